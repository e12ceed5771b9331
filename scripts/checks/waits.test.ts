import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '..', '..');
const OURS = 'packages/shared/src/testing/eventually.ts';

test('tests wait with our helpers, which throw TooLate, and not with those of vitest', () => {
  const files = globSync('{packages,services,tests,scripts}/**/*.ts', { cwd: root, exclude: ['**/node_modules/**'] });
  expect(files).toContain(OURS);
  const others = files.filter((file) => file !== OURS);
  const waiting = others.filter((file) =>
    /expect\s*\.poll\(|\bvi\.wait(For|Until)\(/.test(readFileSync(join(root, file), 'utf8')),
  );
  expect(waiting).toEqual([]);
});
