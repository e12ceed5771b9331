import { join } from 'node:path';
import { build } from 'rolldown';

const SOURCES = join(import.meta.dirname, '../src');

/** The entry points of the package: `.`, `./offline` and `./query`. */
export const ENTRY_POINTS = ['client', 'offline', 'query'] as const;

/** Returns the code of an entry point as it is published: one minified module, with everything that it needs. */
export async function bundle(entryPoint: (typeof ENTRY_POINTS)[number]): Promise<string> {
  const { output } = await build({
    input: join(SOURCES, `${entryPoint}.ts`),
    // Neither Node.js nor a browser: what one of them lacks is looked up at run time.
    platform: 'neutral',
    resolve: { mainFields: ['module', 'main'] },
    transform: { target: 'es2022' },
    output: { format: 'esm', minify: true },
    write: false,
    logLevel: 'warn',
  });
  const [chunk, ...others] = output;
  if (others.length > 0) throw new Error(`${entryPoint} must be one file.`);
  return chunk.code;
}
