import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { expectBalanced, sumsOf } from '../kit/audit.ts';
import { submitUntilAccepted } from '../kit/clients.ts';
import { GrowingPipeline, numberedEvents } from '../kit/growing-pipeline.ts';
import { readRows } from '../kit/kafka-rows.ts';

// The tests of this file build on each other.

const NAME = 'growing';
const EVENTS = 40;
const options = { kafkaBrokers: inject('kafkaBrokers'), clickhouseUrl: inject('clickhouseUrl'), name: NAME };

let growing: GrowingPipeline;

beforeAll(async () => {
  growing = await GrowingPipeline.start(options);
});
afterAll(() => growing?.[Symbol.asyncDispose]());

test('while services run, nothing is changed, and every reason is named', async () => {
  expect((await growing.running.submit(numberedEvents(0, EVENTS))).status).toBe(202);
  await growing.running.settled(EVENTS);
  const { code, output } = await growing.run('4', '--yes');
  expect(code).toBe(1);
  expect(output).toMatch(
    /^Writers are running: the consumer group growing-writer has 1 members\. Stop all writers\.$/m,
  );
  expect(output).toMatch(/^An ingest-api was running \d+ s ago\. Stop all ingest-apis, and wait for 60 s/m);
  expect(output).toMatch(/^Nothing was changed\.$/m);
  expect([await growing.inKafka(), await growing.recorded()]).toEqual([[2, 2], '2']);
});

test('a command that was killed half-way is completed by the next one, and no writer stores before', async () => {
  await Promise.all([growing.running.services.writer.stop(), growing.running.services['ingest-api'].stop()]);
  await growing.lastSignOfLife(61_000);
  expect(await growing.killBefore('record-grown-topics', [4])).toBe('2');
  const { code, output } = await growing.run('4', '--yes');
  expect([code, output]).toEqual([0, expect.stringContaining('Set KAFKA_PARTITIONS=4 for all services')]);
  expect(await growing.recorded()).toBe('4');
});

test('an event that is sent before and after the growth is stored once', async () => {
  const ingest = await growing.startWith('ingest-api', 4);
  const writer = await growing.startWith('writer', 4);
  await Promise.all([ingest.ready(), writer.ready()]);
  await submitUntilAccepted(numberedEvents(0, 2 * EVENTS), { url: ingest.url, key: growing.running.key });
  await growing.running.drained();
  await growing.running.settled(2 * EVENTS);
  const rows = await readRows(options.kafkaBrokers, `${NAME}.events`, (found) => found.length >= 3 * EVENTS);
  const used = new Set(rows.map(({ partition }) => partition));
  expect([...used].some((partition) => partition >= 2)).toBe(true);
  const books = await expectBalanced(growing.running);
  expect(sumsOf(books, 'events')).toEqual({ accepted: 3 * EVENTS, stored: 2 * EVENTS, repeats: EVENTS });
});
