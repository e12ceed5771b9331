import { globSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { describeTiers, sumsOf } from './tier-sums.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const FILES = globSync('{services,packages,scripts,bench,tests}/**/*.test.ts', {
  cwd: ROOT,
  exclude: ['**/node_modules/**'],
});

test('each test file of the repository is of one tier', () => {
  expect(FILES.length).toBeGreaterThan(300);
  const tiersOf = (file: string) => sumsOf({ [file]: 1 }).map(({ tier }) => tier.name);
  expect(FILES.filter((file) => tiersOf(file).length !== 1)).toEqual([]);
});

test.each([
  ['packages/shared/src/text/json.test.ts', 'unit'],
  ['scripts/checks/tier-sums.test.ts', 'unit'],
  ['tests/kit/freeze.test.ts', 'unit'],
  ['services/writer/src/lag.service.test.ts', 'service'],
  ['services/writer/src/lag.slow.test.ts', 'slow'],
  ['services/writer/src/lag.night.test.ts', 'night'],
  ['tests/night/chaos.test.ts', 'night'],
  ['tests/simulation/contracts/kafka.test.ts', 'simulation'],
])('%s is of the tier %s', (file, name) => {
  expect(sumsOf({ [file]: 1 }).map(({ tier }) => tier.name)).toEqual([name]);
});

test('the seconds of a tier are those of its files', () => {
  const text = describeTiers({
    'tests/faults/a.test.ts': 70.4,
    'tests/faults/b.test.ts': 2,
    'packages/a.test.ts': 0.2,
  });
  expect(text.split('\n')).toEqual([
    expect.stringMatching(/^faults +72 s of +\d+ s, 2 files$/),
    expect.stringMatching(/^unit +0 s of +\d+ s, 1 files$/),
  ]);
});
