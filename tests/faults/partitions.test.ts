import { randomUUID } from 'node:crypto';
import { v1 as uuidV1, v7 as uuidV7 } from 'uuid';
import { expect, inject, test } from 'vitest';
import { submitUntilAccepted } from '../kit/clients.ts';
import { readRows } from '../kit/kafka-rows.ts';
import { startPipeline } from '../kit/pipeline.ts';

/** Events of each kind of uuid, and as many whose uuids come from an Idempotency-Key. */
const EVENTS = 60;

test('a repeat of an event gets into the same partition, from every ingest-api, however its UUID is written', async () => {
  const kafkaBrokers = inject('kafkaBrokers');
  await using running = await startPipeline({
    kafkaBrokers,
    clickhouseUrl: inject('clickhouseUrl'),
    name: 'partitions',
  });
  const { key, services } = running;
  const other = await running.startAnother('ingest-api');
  const timestamp = new Date().toISOString();
  const kinds = [() => randomUUID(), () => uuidV1(), () => uuidV7()];
  const uuids = kinds.flatMap((makeUuid) => Array.from({ length: EVENTS }, makeUuid));
  const known = new Set(uuids);

  async function submit(url: string, write: (uuid: string) => string): Promise<void> {
    const events = uuids.map((uuid) => ({ event: 'again', uuid: write(uuid), timestamp }));
    await submitUntilAccepted({ foreignUserGroupId: 'g', events }, { url, key });
    const withoutUuid = Array.from({ length: EVENTS }, () => ({ event: 'again', timestamp }));
    const body = { foreignUserGroupId: 'g', events: withoutUuid };
    const { uuids: derived } = await submitUntilAccepted(body, { url, key, headers: { 'idempotency-key': 'once' } });
    for (const uuid of derived) known.add(uuid);
  }

  await submit(services['ingest-api'].url, (uuid) => uuid);
  await submit(other.url, (uuid) => uuid);
  await submit(other.url, (uuid) => uuid.toUpperCase());
  await services['ingest-api'].stop();
  await running.restart('ingest-api');
  await submit(services['ingest-api'].url, (uuid) => uuid);

  expect(known.size).toBe(4 * EVENTS);
  const rows = await readRows(kafkaBrokers, 'partitions.events', (found) => found.length >= 4 * known.size);
  const byUuid = Map.groupBy(rows, ({ row }) => String(row['uuid']).toLowerCase());
  expect([...byUuid.keys()].sort()).toEqual([...known].sort());
  for (const [uuid, found] of byUuid) {
    expect(found.length, uuid).toBeGreaterThanOrEqual(4);
    expect(new Set(found.map(({ partition }) => partition)).size, uuid).toBe(1);
  }
  for (const [index, kind] of ['UUIDv4', 'UUIDv1', 'UUIDv7'].entries()) {
    const ofKind = new Set(uuids.slice(index * EVENTS, (index + 1) * EVENTS));
    const used = rows.filter(({ row }) => ofKind.has(String(row['uuid']))).map(({ partition }) => partition);
    expect(new Set(used).size, `partitions that hold events with a ${kind}`).toBe(6);
  }
  await running.settled(known.size);
});
