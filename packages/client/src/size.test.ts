import { readFile } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { bundle } from '../scripts/bundle.ts';

const readme = await readFile(new URL('../README.md', import.meta.url), 'utf8');

/** What a browser loads, minified and gzipped, in bytes. */
async function sizeOf(entryPoint: Parameters<typeof bundle>[0]): Promise<number> {
  return gzipSync(await bundle(entryPoint), { level: 9 }).length;
}

const client = await sizeOf('client');

test.each([
  ['`@sluice/client`', client, 2_500],
  ['with `@sluice/client/offline`', client + (await sizeOf('offline')), 4_000],
  ['`@sluice/client/query`', await sizeOf('query'), 4_000],
])('%s has %i bytes, at most %i, and the README says so', (name, bytes, bytesMax) => {
  expect(bytes).toBeLessThanOrEqual(bytesMax);
  const [, figure] = new RegExp(`^\\| ${name} +\\| +([\\d.]+) kB`, 'm').exec(readme) ?? [];
  expect(Number(figure)).toBeCloseTo(bytes / 1_000, 1);
});

test.each(['client', 'offline', 'query'] as const)('the built %s needs no other module', async (entryPoint) => {
  expect(await bundle(entryPoint)).not.toMatch(/\b(import|require)\b/);
});

test('the built client leaves process.env.NODE_ENV to the bundler of an application', async () => {
  expect(await bundle('client')).toContain('process.env.NODE_ENV');
});
