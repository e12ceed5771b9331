import { existsSync } from 'node:fs';
import { glob, readFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '..', '..');

const files = await Array.fromAsync(
  glob(['*.md', '{docs,examples,bench}/**/*.md', 'packages/*/README.md'], { cwd: ROOT }),
);

/** The anchors of a document's headings, as GitHub makes them. */
function anchorsOf(text: string): string[] {
  const headings = withoutCode(text).matchAll(/^#+ (.+)$/gm);
  return [...headings].map(([, heading = '']) =>
    heading
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}_ -]/gu, '')
      .replaceAll(' ', '-'),
  );
}

function withoutCode(text: string): string {
  return text.replaceAll(/^ *```.*?^ *```/gms, '');
}

/** The links of a document that lead to nothing. */
async function brokenLinks(file: string): Promise<string[]> {
  const text = await readFile(join(ROOT, file), 'utf8');
  const broken: string[] = [];
  for (const [, link = ''] of withoutCode(text).matchAll(/\]\(([^)\s]+)\)/g)) {
    if (/^[a-z]+:/.test(link)) continue;
    const [path = '', anchor] = link.split('#');
    const target = path === '' ? join(ROOT, file) : join(ROOT, dirname(file), path);
    const found =
      existsSync(target) && (anchor === undefined || anchorsOf(await readFile(target, 'utf8')).includes(anchor));
    if (!found) broken.push(`${relative('.', file)}: ${link}`);
  }
  return broken;
}

test('every link between documents leads to a file and a heading', async () => {
  expect(files.length).toBeGreaterThan(60);
  expect((await Promise.all(files.map(brokenLinks))).flat()).toEqual([]);
});

test('every path in the map of CONTRIBUTING.md exists', async () => {
  const text = await readFile(join(ROOT, 'CONTRIBUTING.md'), 'utf8');
  const [, map = ''] = /^## Map$(.*?)^## /ms.exec(text) ?? [];
  const paths = [...map.matchAll(/`((?:[\w@.-]+\/)+[\w.-]*)`/g)].map(([, path = '']) => path);
  expect(paths.length).toBeGreaterThan(10);
  expect(paths.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
});

test.each([
  ['ingest-api accepts a request body', 18, ['services/ingest-api', 'packages/submissions']],
  ['writer stores an event', 14, ['services/writer', 'packages/storage']],
  ['query-api serves a filter', 18, ['services/query-api']],
])('the walk "%s" has at most %i files, each of which exists and is met once', async (heading, filesMax, folders) => {
  const text = await readFile(join(ROOT, 'docs', 'design', 'architecture.md'), 'utf8');
  const [, section = ''] = text.split(new RegExp(`^### \\d\\. ${heading}$`, 'm'));
  const [walk = ''] = section.split(/^#/m);
  const paths = [...walk.matchAll(/^\d+\. `([^`]+)`/gm)].map(([, path = '']) => path);
  const isThere = (path: string) => folders.some((folder) => existsSync(join(ROOT, folder, 'src', path)));
  expect(paths.length).toBeGreaterThan(10);
  expect(paths.length).toBeLessThanOrEqual(filesMax);
  expect([...new Set(paths)]).toEqual(paths);
  expect(paths.filter((path) => !isThere(path) && !existsSync(join(ROOT, path)))).toEqual([]);
});
