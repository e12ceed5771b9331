import { access, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { TIERS_OF, tierOf } from '../checks/tiers.ts';
import { PLANTED_BUILD_FAULTS } from './planted-build-faults.ts';
import { FaultMismatch, plant } from './planted-fault.ts';
import { PLANTED_SIMULATOR_FAULTS } from './planted-simulator-faults.ts';

const root = join(import.meta.dirname, '..', '..');
const FAULTS = [...PLANTED_SIMULATOR_FAULTS, ...PLANTED_BUILD_FAULTS];

test.each(FAULTS)('$name fits the code', async (fault) => {
  const source = await readFile(join(root, fault.file), 'utf8');
  expect(plant(source, fault)).not.toBe(source);
});

test.each(PLANTED_BUILD_FAULTS)('the tests of $name are tests of the build', async ({ tests }) => {
  for (const file of tests) {
    await access(join(root, file));
    expect(TIERS_OF.build, file).toContain(tierOf(file)?.name);
  }
});

test('no two faults have the same name', () => {
  const names = FAULTS.map(({ name }) => name);
  expect([...new Set(names)]).toEqual(names);
});

test.each([
  ['is not there', 'const b = 1;', 0],
  ['is there twice', 'const a = 1;\nconst a = 1;', 2],
])('a search text that %s is an error', (_what, source, times) => {
  const fault = { name: 'f', file: 'a.ts', search: 'const a = 1;', replacement: '', breaks: '' };
  expect(() => plant(source, fault)).toThrow(`occurs ${times} times in a.ts`);
});

test('a fault that leaves no TypeScript is an error', () => {
  const fault = { name: 'f', file: 'a.ts', search: '{}', replacement: '{', breaks: '' };
  expect(() => plant('const a: object = {};', fault)).toThrow(FaultMismatch);
});
