import { eventHash } from '@sluice/shared/rows/row-hashes';
import { eventually } from '@sluice/shared/testing/eventually';
import fc, { sample } from '@sluice/shared/testing/fast-check';
import { expect, test } from 'vitest';
import { anEvent, type QueryService, type TestEvent } from './testing/query-service.ts';
import {
  mirrorsOf,
  prepareShards,
  ranges,
  sharded,
  single,
  someEvents,
  storeEvents,
  streams,
} from './testing/rows-on-shards.ts';
import type { Shard } from './testing/shards.ts';
import { PATIENCE } from './testing/streams.ts';

prepareShards('with mirrors', ['a']);

test.each(['ndjson', 'csv', 'parquet'])('an export of two ranges is that of one server: %s', async (format) => {
  const exportOf = async ({ app }: Pick<QueryService, 'app'>) => {
    const url = `/events/export?format=${format}&startDate=2026-02-01&properties.plan=pro`;
    const { statusCode, rawPayload } = await app.inject({ url, headers: { authorization: 'Bearer a' } });
    expect(statusCode).toBe(200);
    return rawPayload.toString('latin1');
  };
  const [one, several] = [await exportOf(single), await exportOf(sharded)];
  if (format === 'parquet') expect(several).toMatch(/^PAR1.*PAR1$/s);
  else expect(several).toBe(one);
  expect(one.length).toBeGreaterThan(1_000);
});

test('when the newest blocks of one range are gone, a stream goes on with those of the other', async () => {
  const [a1] = sharded.shards as [Shard, Shard, Shard];
  const ofRange = (shards: readonly Shard[] | undefined, count: number, given: Partial<TestEvent> = {}) =>
    sample(fc.uuid(), 50)
      .filter((uuid) => mirrorsOf(eventHash(uuid)) === shards)
      .slice(0, count)
      .map((uuid) => anEvent({ uuid, ...given }));
  const stream = await streams.open('', { workspace: 'f' });
  // Of a month that no other event has.
  const newest = ofRange(ranges[1], 2, { timestampMs: Date.UTC(2025, 5, 1) });
  await storeEvents('f', [...newest, ...ofRange(ranges[0], 1)]);
  await eventually(() => newest.every(({ uuid }) => stream.uuids.includes(uuid)), PATIENCE).toBe(true);
  for (const { clickHouse } of ranges[1] ?? []) {
    const parts = await clickHouse.query({
      query: "SELECT DISTINCT _partition_id AS id FROM events WHERE workspace_id = 'f' AND timestamp < '2025-07-01'",
      format: 'JSONEachRow',
    });
    const [{ id }] = (await parts.json<{ id: string }>()) as [{ id: string }];
    await clickHouse.command({ query: 'ALTER TABLE events DROP PARTITION ID {id:String}', query_params: { id } });
  }
  for (const event of ofRange(ranges[0], 3)) {
    await a1.store('f', [event]);
    await eventually(() => stream.uuids.at(-1), PATIENCE).toBe(event.uuid);
  }
  expect(stream.problems).toEqual([]);
  await streams.closeAll();
});

const EVERYTHING = [
  '/events',
  '/events?limit=0',
  '/users',
  '/organizations',
  '/events/names',
  '/events/properties',
  '/events/series?startDate=2026-02-01',
  '/overview',
];

async function expectStatus(urls: readonly string[], status: number): Promise<void> {
  const statusOf = async (url: string) => [url, (await sharded.get(url, 'c')).status];
  expect(await Promise.all(urls.map(statusOf))).toEqual(urls.map((url) => [url, status]));
}

test('when a server is gone, requests and streams go on with its mirror; a uuid needs only the server that has it', async () => {
  const [a1, b1, b2] = sharded.shards as [Shard, Shard, Shard];
  const events = someEvents(40);
  await storeEvents('c', events);
  const [ofA, ofB] = [a1, b1].map((shard) => events.find(({ uuid }) => mirrorsOf(eventHash(uuid)).includes(shard)));
  for (const each of sharded.shards) {
    await each.progress(60_000);
    await each.progress();
  }
  const stream = await streams.open('', { workspace: 'c' });
  const before = someEvents(10);
  await storeEvents('c', before);
  const untilGot = async (sent: readonly TestEvent[]) => {
    const missing = () => sent.filter(({ uuid }) => !stream.uuids.includes(uuid));
    await eventually(missing, PATIENCE).toEqual([]);
  };
  await untilGot(before);
  for (const each of sharded.shards) await each.progress();
  // So many that another hash could not find all of them by chance.
  for (const { uuid } of events.slice(0, 12)) {
    expect((await sharded.get(`/events?uuid=${uuid}`, 'c')).body).toMatchObject({ total: 1, results: [{ uuid }] });
  }

  await b1.kill9();
  await expectStatus(EVERYTHING, 200);
  const after = someEvents(10);
  for (const event of after) {
    for (const shard of mirrorsOf(eventHash(event.uuid))) if (shard !== b1) await shard.store('c', [event]);
  }
  await untilGot([...before, ...after]);
  expect(stream.moves).toEqual([{ from: 'a1+b1', to: 'a1+b2', since: expect.any(String) }]);
  await streams.closeAll();

  const goOn = b2.relay.freeze();
  const { body } = await sharded.get(`/events?uuid=${ofA?.uuid}`, 'c');
  expect(body).toMatchObject({ total: 1, results: [{ uuid: ofA?.uuid }] });
  await expectStatus([...EVERYTHING, `/events?uuid=${ofB?.uuid}`], 503);
  goOn();
  await expectStatus(EVERYTHING, 200);
  await b2.kill9();
  await expectStatus(EVERYTHING, 503);
});
