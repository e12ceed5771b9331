import { ArgumentsError, parseArguments } from '@sluice/shared/config/command-line';

/** What may follow the name of a command. */
export type Operands = 'none' | 'none, or --all' | 'one' | 'two' | 'some' | 'some, or --all';

export interface CommandSyntax<Name extends string, Text extends string, Flag extends string> {
  readonly commands: Readonly<Record<Name, Operands>>;
  /** The options that take a value, with their defaults. */
  readonly texts: Readonly<Record<Text, string>>;
  readonly flags: readonly Flag[];
  /** The error message when there is no such command, or its operands do not fit. */
  readonly usage: string;
}

export interface ParsedCommand<Name extends string, Text extends string, Flag extends string> {
  readonly command: Name;
  readonly operands: readonly string[];
  readonly all: boolean;
  readonly texts: Readonly<Record<Text, string>>;
  readonly flags: Readonly<Record<Flag, boolean>>;
}

/**
 * Parses `COMMAND [OPERAND ...] [--option ...]`. Besides the options of the syntax, `--all` is known.
 *
 * @throws {ArgumentsError}
 */
export function parseCommand<Name extends string, Text extends string, Flag extends string>(
  args: readonly string[],
  { commands, texts, flags, usage }: CommandSyntax<Name, Text, Flag>,
): ParsedCommand<Name, Text, Flag> {
  const flag = { type: 'boolean', default: false } as const;
  const textNames = Object.keys(texts) as Text[];
  const { values: parsedValues, positionals } = parseArguments({
    args: [...args],
    allowPositionals: true,
    options: {
      ...Object.fromEntries(textNames.map((name) => [name, { type: 'string', default: texts[name] } as const])),
      ...Object.fromEntries(flags.map((name) => [name, flag])),
      all: flag,
    },
  });
  const values: Readonly<Record<string, unknown>> = parsedValues;
  const [name, ...operands] = positionals;
  const parsed = {
    operands,
    all: values['all'] === true,
    texts: Object.fromEntries(textNames.map((text) => [text, String(values[text])])) as Record<Text, string>,
    flags: Object.fromEntries(flags.map((text) => [text, values[text] === true])) as Record<Flag, boolean>,
  };
  const command = (Object.keys(commands) as Name[]).find((known) => known === name);
  if (command === undefined || !fits(commands[command], operands.length, parsed.all)) throw new ArgumentsError(usage);
  return { ...parsed, command };
}

function fits(operands: Operands, count: number, all: boolean): boolean {
  switch (operands) {
    case 'none':
      return count === 0 && !all;
    case 'none, or --all':
      return count === 0;
    case 'one':
      return count === 1 && !all;
    case 'two':
      return count === 2 && !all;
    case 'some':
      return count > 0 && !all;
    case 'some, or --all':
      return count > 0 !== all;
  }
}
