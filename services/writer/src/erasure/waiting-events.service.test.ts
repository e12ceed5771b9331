import { randomUUID } from 'node:crypto';
import { createLogger } from '@sluice/shared/base/log';
import { kafkaEnv, loadConfig } from '@sluice/shared/config';
import { createKafka } from '@sluice/shared/kafka/client';
import { createTopics } from '@sluice/shared/kafka/testing/create-topics';
import { withAdmin } from '@sluice/shared/kafka/topics';
import { eventually } from '@sluice/shared/testing/eventually';
import { CarriedTables } from '@sluice/storage/clickhouse/carried-tables';
import { COLD_VOLUME_AWAY } from '@sluice/storage/protocol/dead-letter';
import kafkajs, { type Kafka } from 'kafkajs';
import { expect, inject, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { createTestStore, eventRow, NOON, STAGINGS } from '../testing/store.ts';
import { WaitingEvents } from './waiting-events.ts';

const DELAY_MS = 60_000;
const logger = createLogger('test', 'silent');

/** A time as ClickHouse reads it. */
const ago = (ms: number) => new Date(Date.now() - ms).toISOString().slice(0, -1).replace('T', ' ');

test.each(STAGINGS)(
  'late events that wait are sent in the order of the log, and removed later, and nothing else is (staging: %s)',
  async (staging) => {
    const db = await createTestStore(inject('clickhouseUrl'));
    onTestFinished(() => db.close());
    const kafka = createKafka(
      loadConfig(z.object(kafkaEnv), { KAFKA_BROKERS: inject('kafkaBrokers').join() }),
      'test',
      logger,
    );
    const topic = `waiting-${randomUUID()}`;
    await createTopics(kafka, [{ topic, numPartitions: 2 }]);
    const letter = (id: string, offset: number, fields: object = {}) => ({
      ...{ id, kind: 'events', format: '1', topic, partition: 1, offset, line: 0, reason: COLD_VOLUME_AWAY },
      row: JSON.stringify(eventRow({ event: id, timestamp: NOON + offset * 20 * 86_400_000 })),
      state_at: ago(2 * DELAY_MS),
      ...fields,
    });
    const values = [
      ...[letter('c', 0, { line: 1 }), letter('b', 0), letter('d', 2), letter('a', 1, { partition: 0 })],
      letter('of another kind', 0, { kind: 'rejected' }),
      letter('of another reason', 0, { reason: 'TYPE_MISMATCH: r' }),
      // The insert of another one may be running that began before.
      letter('too young', 0, { state_at: ago(DELAY_MS / 2) }),
    ];
    await db.client.insert({ table: 'dead_letters', values, format: 'JSONEachRow' });
    const left = async () =>
      (await db.read<{ id: string }>('SELECT id FROM dead_letters FINAL ORDER BY id')).map(({ id }) => id);
    const all = await left();
    const waitingWith = (other: Kafka, { isOwner = true, keptMs = DELAY_MS } = {}) => {
      const config = { ERASURE_INTERVAL_MS: 100, ERASURE_DELAY_MS: DELAY_MS, RETENTION_INTERVAL_MS: keptMs };
      const deps = {
        client: db.writerClient,
        useTables: staging === 'carried' ? CarriedTables.use : undefined,
        kafka: other,
        writerId: randomUUID(),
        logger,
        failures: { inc: () => undefined },
      };
      const events = new WaitingEvents(config, deps);
      events.setOwner(isOwner);
      return events;
    };

    const nowhere = new kafkajs.Kafka({
      brokers: ['127.0.0.1:9'],
      retry: { retries: 0 },
      logLevel: kafkajs.logLevel.NOTHING,
    });
    await expect(waitingWith(nowhere).takeRound()).rejects.toThrow(/connect/i);
    await expect(waitingWith(kafka, { isOwner: false }).takeRound()).rejects.toThrow('no longer');
    expect(await left()).toEqual(all);

    const sentSoFar = async () => {
      const offsets = await withAdmin(kafka, (admin) => admin.fetchTopicOffsets(topic));
      return offsets.map(({ high }) => Number(high)).reduce((sum, high) => sum + high);
    };
    await waitingWith(kafka).takeRound();
    expect(await sentSoFar()).toBe(4);
    const consumer = kafka.consumer({ groupId: randomUUID() });
    onTestFinished(() => consumer.disconnect());
    await consumer.connect();
    await consumer.subscribe({ topic, fromBeginning: true });
    const sent: unknown[] = [];
    await consumer.run({
      eachMessage: async ({ partition, message: { headers, value } }) => {
        const { event } = JSON.parse(String(value)) as { event: string };
        sent.push([partition, event, String(headers?.['kind']), String(headers?.['format'])]);
      },
    });
    await eventually(() => sent.toSorted()).toHaveLength(4);
    const inPartition = (wanted: number) =>
      (sent as [number, string, string, string][]).filter(([one]) => one === wanted);
    expect(inPartition(0)).toEqual([[0, 'a', 'events', '1']]);
    expect(inPartition(1)).toEqual(['b', 'c', 'd'].map((event) => [1, event, 'events', '1']));
    // What is sent says for some time where it is; one that fails again waits again.
    expect(await left()).toEqual(all);
    await db.client.insert({
      table: 'dead_letters',
      values: [{ ...letter('d', 2), state_at: ago(0) }],
      format: 'JSONEachRow',
    });
    await waitingWith(kafka).takeRound();
    expect(await sentSoFar()).toBe(4);

    // A removal that has failed would hold up all others.
    await db.client.command({
      query: `ALTER TABLE dead_letters DELETE WHERE reason = '${COLD_VOLUME_AWAY}' AND throwIf(1) SETTINGS mutations_sync = 0`,
    });
    const failing = async () =>
      (await db.read("SELECT 1 FROM system.mutations WHERE latest_fail_reason != '' AND NOT is_killed AND NOT is_done"))
        .length;
    await eventually(failing).toBe(1);
    await waitingWith(kafka, { keptMs: 1 }).takeRound();
    expect(await left()).toEqual(['d', 'of another kind', 'of another reason', 'too young']);
  },
);
