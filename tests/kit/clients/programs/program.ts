import type { TestCall } from '../calls.ts';

/** What a program gets as its only argument, as JSON. */
export interface Program<Call> {
  readonly url: string;
  readonly key: string;
  readonly calls: readonly Call[];
  /** Between two calls. */
  readonly paceMs: number;
  /** The package of the client. */
  readonly module: string;
  /** The folder where it is installed. */
  readonly folder: string;
}

export type ProgramInput = Program<TestCall>;

/** What a program prints as JSON on its last line. */
export interface ProgramOutcome {
  /** What the client reported. */
  readonly errors: readonly string[];
  /** The indexes of the calls that the client reported as delivered. */
  readonly delivered: readonly number[];
}

const DATE = '$date';

/** Returns the argument of a program: JSON, in which a date is `{"$date": "…"}`. */
export function encodeInput(input: Program<unknown>): string {
  return JSON.stringify(input, function encode(this: Record<string, unknown>, name, value: unknown) {
    return this[name] instanceof Date ? { [DATE]: value } : value;
  });
}

/** Reads the argument of this process. */
export function readInput<Input = ProgramInput>(): Input {
  return JSON.parse(process.argv[2] ?? '', (_name, value) =>
    typeof value?.[DATE] === 'string' ? new Date(value[DATE]) : value,
  );
}

export function printOutcome(outcome: ProgramOutcome): void {
  console.log(JSON.stringify(outcome));
}
