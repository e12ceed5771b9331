// Builds the console into dist: scripts and a style sheet, named by their content, and the page that names them.
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { build } from 'rolldown';

const FOLDER = join(import.meta.dirname, '..');
const DIST = join(FOLDER, 'dist');
const { resolve } = createRequire(import.meta.url);

/** Returns the files of the console as they are served, by name. */
export async function bundleConsole(): Promise<ReadonlyMap<string, string>> {
  const { output } = await build({
    input: join(FOLDER, 'src/shell/main.tsx'),
    platform: 'browser',
    tsconfig: false,
    transform: { target: 'es2024', jsx: { runtime: 'automatic', importSource: 'preact' } },
    output: {
      ...{ format: 'esm', minify: true, comments: false },
      ...{ entryFileNames: 'script-[hash:16].js', chunkFileNames: 'part-[hash:16].js', hashCharacters: 'hex' },
      codeSplitting: { groups: [{ name: 'script', tags: ['$initial'] }] },
    },
    write: false,
    logLevel: 'warn',
  });
  const scripts = output.filter((file) => file.type === 'chunk');
  const styles = await Promise.all(
    [
      resolve('uplot/dist/uPlot.min.css'),
      ...[
        'base/theme',
        'shell/shell',
        'parts/style',
        'pages/home',
        'pages/settings',
        'entities/entities',
        'charts/charts',
        'explore/explore',
        'sql/sql',
        'views/views',
        'operate/operate',
        'search/search',
      ].map((name) => join(FOLDER, `src/${name}.css`)),
    ].map((file) => readFile(file, 'utf8')),
  );
  const files = new Map([
    ...scripts.map(({ fileName, code }): [string, string] => [fileName, code]),
    named('style', 'css', styles.join('\n')),
    named('colors', 'js', await readFile(join(FOLDER, 'src/shell/colors.js'), 'utf8')),
    named('icon', 'svg', await readFile(join(FOLDER, 'src/shell/icon.svg'), 'utf8')),
  ]);
  let page = await readFile(join(FOLDER, 'src/shell/index.html'), 'utf8');
  for (const name of files.keys()) page = page.replaceAll(`{${name.replace(/-[0-9a-f]+\./, '.')}}`, name);
  return files.set('index.html', page);
}

function named(name: string, extension: string, content: string): [string, string] {
  const hash = createHash('sha256').update(content).digest('hex').slice(0, 16);
  return [`${name}-${hash}.${extension}`, content];
}

/** Writes the files of the console into `packages/console/dist`, the page last, and removes those of other builds. */
export async function buildConsole(): Promise<void> {
  const files = await bundleConsole();
  await mkdir(DIST, { recursive: true });
  for (const [name, content] of files) {
    const file = join(DIST, name);
    // Somebody may be reading what is there.
    if ((await readFile(file, 'utf8').catch(() => undefined)) !== content) await writeFile(file, content);
  }
  for (const name of await readdir(DIST)) if (!files.has(name)) await rm(join(DIST, name), { force: true });
}

if (import.meta.main) await buildConsole();
