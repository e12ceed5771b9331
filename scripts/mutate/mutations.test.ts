import { access, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { MutationMismatch, mutate } from './mutation.ts';
import { MUTATIONS } from './mutations.ts';
import { PLANTED_FAULTS } from './planted-faults.ts';

const root = join(import.meta.dirname, '..', '..');

test.each(MUTATIONS)('$name fits the code', async (mutation) => {
  const source = await readFile(join(root, mutation.file), 'utf8');
  expect(mutate(source, mutation)).not.toBe(source);
  expect(mutation.tests.length).toBeGreaterThan(0);
  for (const file of mutation.tests) await access(join(root, file));
});

test.each(PLANTED_FAULTS)('the planted fault $name fits the code', async (fault) => {
  const source = await readFile(join(root, fault.file), 'utf8');
  expect(mutate(source, fault)).not.toBe(source);
});

test('no two mutations have the same name', () => {
  const names = [...MUTATIONS, ...PLANTED_FAULTS].map(({ name }) => name);
  expect([...new Set(names)]).toEqual(names);
});

test.each([
  ['is not there', 'const b = 1;', 0],
  ['is there twice', 'const a = 1;\nconst a = 1;', 2],
])('a search text that %s is an error', (_what, source, times) => {
  const mutation = { name: 'm', file: 'a.ts', search: 'const a = 1;', replacement: '', breaks: '', tests: [] };
  expect(() => mutate(source, mutation)).toThrow(`occurs ${times} times in a.ts`);
});

test('a mutation that leaves no TypeScript is an error', () => {
  const mutation = { name: 'm', file: 'a.ts', search: '{}', replacement: '{', breaks: '', tests: [] };
  expect(() => mutate('const a: object = {};', mutation)).toThrow(MutationMismatch);
});
