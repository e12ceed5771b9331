import { stripTypeScriptTypes } from 'node:module';

/** A deliberate fault in the code, which the simulator or the tests have to find. */
export interface PlantedFault {
  /** Unique: `<simulator or part of the code>/<what is wrong>`. */
  readonly name: string;
  /** Path of the changed file, relative to the repository root. */
  readonly file: string;
  /** Occurs exactly once in the file. */
  readonly search: string;
  readonly replacement: string;
  /** What goes wrong with it, in one sentence. */
  readonly breaks: string;
}

/** A fault that tests have to find. */
export interface TestedFault extends PlantedFault {
  /** The files that have to find it, one of them at least, relative to the repository root. */
  readonly tests: readonly string[];
}

/** The fault no longer fits the code. */
export class FaultMismatch extends Error {
  override readonly name = 'FaultMismatch';
}

/**
 * Returns the text of a file with a fault.
 *
 * @throws {FaultMismatch} when the search text does not occur exactly once, or the result is not TypeScript
 */
export function plant(source: string, { name, file, search, replacement }: PlantedFault): string {
  const found = source.split(search).length - 1;
  if (found !== 1) throw new FaultMismatch(`${name}: its search text occurs ${found} times in ${file}, not once`);
  const faulty = source.replace(search, () => replacement);
  if (file.endsWith('.ts')) checkSyntax(faulty, name);
  return faulty;
}

function checkSyntax(source: string, name: string): void {
  try {
    stripTypeScriptTypes(source);
  } catch (error) {
    throw new FaultMismatch(`${name}: ${(error as Error).message}`);
  }
}
