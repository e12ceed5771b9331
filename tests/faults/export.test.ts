import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { until } from '@sluice/shared/testing/until';
import { expect, test } from 'vitest';
import { EXPORT, EXPORT_KEY, startExports } from '../kit/exports.ts';
import { runExporter } from '../kit/importer.ts';

/** Some 58 MB: more than is written until ClickHouse is killed. */
const EVENTS = 50_000;

async function sizeOf(file: string): Promise<number> {
  return await stat(file).then(
    ({ size }) => size,
    () => 0,
  );
}

/** Expects each event once, in order, and a last line with their number. */
async function expectComplete(file: string): Promise<void> {
  const uuids = new Set<string>();
  let last = '';
  let lastPosition = '';
  for await (const line of createInterface({ input: createReadStream(file) })) {
    const { uuid, timestamp } = JSON.parse(line) as { uuid?: string; timestamp?: string };
    if (uuid !== undefined) {
      uuids.add(uuid);
      const position = `${timestamp},${uuid}`;
      if (position <= lastPosition) throw new Error(`${position} is behind ${lastPosition}`);
      lastPosition = position;
    }
    last = line;
  }
  expect(last).toBe(`{"complete":true,"events":${EVENTS}}`);
  expect(uuids.size).toBe(EVENTS);
}

test('ClickHouse is killed in the middle of exports: connections break off, and npm run export completes its file', async () => {
  await using exports = await startExports(EVENTS);
  const { api, clickhouse, folder } = exports;
  const response = await fetch(api.url + EXPORT);
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  await reader.read();
  const file = join(folder, 'events.ndjson');
  await clickhouse.kill9();
  let tail = '';
  await expect(async () => {
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      tail = (tail + Buffer.from(next.value).toString('latin1')).slice(-200);
    }
  }).rejects.toThrow('terminated');
  expect(tail).not.toContain('"complete"');
  expect(tail).not.toContain('Exception');
  await clickhouse.restart();
  await api.ready();

  const args = ['--url', api.url, '--out', file, '--give-up-after', '300', 'startDate=2026-01-01'];
  const exporting = runExporter(args, EXPORT_KEY);
  await Promise.race([
    until('the export to be under way', async () => (await sizeOf(`${file}.part`)) > 10_000_000),
    exporting.then(({ output }) => Promise.reject(new Error(`The export ended too early: ${output}`))),
  ]);
  await clickhouse.kill9();
  const cutOff = await sizeOf(`${file}.part`);
  await clickhouse.restart();
  const { code, output } = await exporting;
  expect(code, output).toBe(0);
  expect(await sizeOf(file)).toBeGreaterThan(cutOff);
  await expectComplete(file);
});
