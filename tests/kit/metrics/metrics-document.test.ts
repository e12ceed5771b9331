import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { listMetrics } from './metric-list.ts';
import { withMetrics } from './metrics-document.ts';
import { OPERATOR_ADVICE } from './operator-advice.ts';

test('docs/operate/metrics.md has every metric as the services declare it', async () => {
  const text = await readFile(new URL('../../../docs/operate/metrics.md', import.meta.url), 'utf8');
  // npm run metrics -- --write writes them.
  expect(text).toBe(withMetrics(text));
});

test('an operator is told what to do about each metric, and about no other', () => {
  expect(Object.keys(OPERATOR_ADVICE).sort()).toEqual(
    listMetrics()
      .map(({ name }) => name)
      .sort(),
  );
});

test('a document without a place for the metrics is refused', () => {
  expect(() => withMetrics('# Metrics\n')).toThrow(/has no "<!-- metrics/);
});
