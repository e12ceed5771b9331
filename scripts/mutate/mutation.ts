import { stripTypeScriptTypes } from 'node:module';

/** A fault that is put into the code on purpose, to see that a test notices it. */
export interface Mutation {
  /** Tells it from all others: `<part>/<what>`. */
  readonly name: string;
  /** The file that is changed, from the root of the repository. */
  readonly file: string;
  /** A text that occurs exactly once in the file. */
  readonly search: string;
  readonly replacement: string;
  /** What the mutation breaks, in one sentence. */
  readonly breaks: string;
  /** The test files of which at least one must fail, from the root of the repository. */
  readonly tests: readonly string[];
}

/** A mutation that does not fit the code any more. */
export class MutationMismatch extends Error {
  override readonly name = 'MutationMismatch';
}

/**
 * The mutated text of a file.
 *
 * @throws {MutationMismatch} when the search text does not occur exactly once, or the result is no TypeScript
 */
export function mutate(source: string, { name, file, search, replacement }: Mutation): string {
  const found = source.split(search).length - 1;
  if (found !== 1) throw new MutationMismatch(`${name}: its search text occurs ${found} times in ${file}, not once`);
  const mutated = source.replace(search, () => replacement);
  if (file.endsWith('.ts')) checkSyntax(mutated, name);
  return mutated;
}

function checkSyntax(source: string, name: string): void {
  try {
    stripTypeScriptTypes(source);
  } catch (error) {
    throw new MutationMismatch(`${name}: ${(error as Error).message}`);
  }
}
