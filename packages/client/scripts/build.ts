// Builds what is published into dist: the entry points and their types. `npm pack` runs it.
import { execFile } from 'node:child_process';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { bundle, ENTRY_POINTS } from './bundle.ts';

const folder = join(import.meta.dirname, '..');
const dist = join(folder, 'dist');
// The TypeScript of this package is an older one, for openapi-typescript.
const tsc = join(folder, '../../node_modules/typescript/bin/tsc');

await rm(dist, { recursive: true, force: true });
await mkdir(dist);
for (const name of ENTRY_POINTS) await writeFile(join(dist, `${name}.js`), await bundle(name));
await promisify(execFile)(process.execPath, [tsc, '-p', join(folder, 'tsconfig.build.json')]).catch((error) => {
  throw new Error(error.stdout);
});
// The compiler leaves the names of the sources in the types: './calls.ts'.
for (const name of await readdir(dist)) {
  if (!name.endsWith('.d.ts')) continue;
  const file = join(dist, name);
  const text = await readFile(file, 'utf8');
  await writeFile(file, text.replaceAll(/(from '\.\/[\w-]+)\.ts'/g, "$1.js'"));
}
