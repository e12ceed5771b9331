import { stripTypeScriptTypes } from 'node:module';

/** A deliberate fault in the code that a test must detect. */
export interface Mutation {
  /** Unique: `<area>/<what is wrong>`. */
  readonly name: string;
  /** Path of the changed file, relative to the repository root. */
  readonly file: string;
  /** Occurs exactly once in the file. */
  readonly search: string;
  readonly replacement: string;
  /** What goes wrong with it, in one sentence. */
  readonly breaks: string;
  /** Paths of the test files, relative to the repository root. At least one must fail. */
  readonly tests: readonly string[];
}

/** The mutation no longer fits the code. */
export class MutationMismatch extends Error {
  override readonly name = 'MutationMismatch';
}

/**
 * Returns the mutated text of a file.
 *
 * @throws {MutationMismatch} when the search text does not occur exactly once, or the result is not TypeScript
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
