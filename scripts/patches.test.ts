import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const root = new URL('../', import.meta.url);
const read = (path: string) => readFileSync(new URL(path, root), 'utf8');

/** The hunks of all patches, each as `package file number`. */
function hunksOfPatches(): string[] {
  return readdirSync(new URL('patches', root))
    .filter((name) => name.endsWith('.patch'))
    .flatMap((name) => {
      const files = read(`patches/${name}`)
        .split(/^diff --git a\//m)
        .slice(1);
      return files.flatMap((text) =>
        [...text.matchAll(/^@@ /gm)].map((_, index) => `${name.split('@')[0]} ${text.split(' ')[0]} ${index + 1}`),
      );
    });
}

/** The hunks that the tables of patches/README.md name, in the same form. */
function hunksOfTables(): string[] {
  const sections = read('patches/README.md').split(/^## /m).slice(1);
  return sections.flatMap((section) =>
    [...section.matchAll(/`([^` ]+)` ((?:\d+, )*\d+)/g)].flatMap(([, file, numbers = '']) =>
      numbers.split(', ').map((number) => `${section.split('\n')[0]} ${file} ${number}`),
    ),
  );
}

test('patches/README.md explains each hunk of each patch', () => {
  expect(hunksOfTables().toSorted()).toEqual(hunksOfPatches().toSorted());
});

test('the test files that patches/README.md names exist', () => {
  const named = [...read('patches/README.md').matchAll(/`([^`]+\.test\.ts)`/g)].map(([, file = '']) => file);
  expect(named.length).toBeGreaterThan(0);
  expect(named.filter((file) => !existsSync(new URL(file, root)))).toEqual([]);
});
