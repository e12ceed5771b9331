import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { shownPath } from '../text/printable.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * A secret, and the variable that names a file with it. `loadConfig` reads the file: the text without its last newline
 * is the secret.
 */
export function secret<Name extends string>(name: Name) {
  const variables = { [name]: z.string().optional(), [`${name}_FILE`]: z.string().optional() };
  return variables as Readonly<Record<Name | `${Name}_FILE`, z.ZodOptional<z.ZodString>>>;
}

/**
 * Puts the content of secret files into the environment.
 *
 * @param names of the variables that are known: `X` is a secret that may come from a file if `X_FILE` is known as well
 * @returns one error for each file that cannot be used, and for each secret that is given twice
 */
export function readSecretFiles(env: Environment, names: readonly string[]): { env: Environment; errors: string[] } {
  const errors: string[] = [];
  const read: Record<string, string> = {};
  for (const name of names) {
    const variable = `${name}_FILE`;
    const path = env[variable];
    if (path === undefined || !names.includes(variable)) continue;
    if (env[name] !== undefined) {
      errors.push(`${variable}: ${name} is set as well; set one of them`);
      continue;
    }
    const content = contentOf(path);
    if (content.text) read[name] = content.text;
    else errors.push(`${variable}: ${shownPath(path)} ${content.error ?? 'is empty'}`);
  }
  return { env: { ...env, ...read }, errors };
}

function contentOf(path: string): { readonly text?: string; readonly error?: string } {
  try {
    return { text: readFileSync(path, 'utf8').replace(/\r?\n$/, '') };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return { error: code === 'ENOENT' ? 'does not exist' : `cannot be read (${code})` };
  }
}
