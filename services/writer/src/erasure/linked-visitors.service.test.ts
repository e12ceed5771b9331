import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createLogger } from '@sluice/shared/base/log';
import { kafkaEnv, loadConfig } from '@sluice/shared/config';
import { createKafka } from '@sluice/shared/kafka/client';
import { createTopics } from '@sluice/shared/kafka/testing/create-topics';
import { withAdmin } from '@sluice/shared/kafka/topics';
import type { ChangeRow } from '@sluice/shared/rows';
import { visitorOf } from '@sluice/shared/rows/deleted-person';
import { mergeKeyOf } from '@sluice/shared/rows/merged-user';
import { eventually } from '@sluice/shared/testing/eventually';
import { STATEMENTS as STORAGE_STATEMENTS } from '@sluice/storage/clickhouse/statements';
import { expect, inject, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { batchOf, changeRow, createTestStore, eventRow, NOON } from '../testing/store.ts';
import { Erasure } from './erasure.ts';
import { LinkedVisitors } from './linked-visitors.ts';

const logger = createLogger('test', 'silent');
const PARTITIONS = 2;
const NOON_US = NOON * 1_000;

/** What says that a visitor is a user, so many microseconds after noon; without a user, that it is nobody. */
function fact(visitor: string, user: string, after: number, operation: 'link' | 'say' = 'link'): ChangeRow {
  const row = changeRow({ kind: 'visitor', id: visitor, operation, version: NOON_US + after });
  return user === '' ? row : { ...row, user_id: user };
}

/** What somebody says of a user; without `into`, that it is itself. */
const merge = (user: string, into: string, after: number) => fact(mergeKeyOf(user), into, after, 'say');

const deletion = (id: string, after: number) => changeRow({ id, operation: 'delete', version: NOON_US + after });

async function startLinkedVisitors() {
  const db = await createTestStore(inject('clickhouseUrl'));
  onTestFinished(() => db.close());
  const config = loadConfig(z.object(kafkaEnv), {
    KAFKA_BROKERS: inject('kafkaBrokers').join(),
    KAFKA_TOPIC_PREFIX: `visitors-${randomUUID()}.`,
    KAFKA_PARTITIONS: String(PARTITIONS),
  });
  const kafka = createKafka(config, 'test', logger);
  const topic = `${config.KAFKA_TOPIC_PREFIX}events`;
  await createTopics(kafka, [{ topic, numPartitions: PARTITIONS }]);
  const deps = { client: db.writerClient, writerId: randomUUID(), logger, failures: { inc: () => undefined } };
  const rounds = { ERASURE_DELAY_MS: 1_000, ERASURE_INTERVAL_MS: 50, ERASURE_GATHER_MS: 0 };
  const visitors = new LinkedVisitors({ ...config, ...rounds }, { ...deps, kafka });
  visitors.setOwner(true);
  const erasure = new Erasure({ ...rounds, ERASURE_DELAY_MS: 0 }, deps);
  erasure.setOwner(true);

  const sent: ChangeRow[] = [];
  const consumer = kafka.consumer({ groupId: randomUUID(), maxWaitTimeInMs: 50 });
  await consumer.connect();
  onTestFinished(() => consumer.disconnect());
  await consumer.subscribe({ topic, fromBeginning: true });
  await consumer.run({
    eachMessage: async ({ message: { value } }) => {
      const lines = String(value).trimEnd().split('\n');
      sent.push(...lines.map((line) => JSON.parse(line) as ChangeRow));
    },
  });
  return {
    ...{ db, visitors, erasure, sent },
    /** The server has stored everything through so many milliseconds after noon. */
    async storeThrough(afterMs: number) {
      const query_params = { throughMs: NOON + afterMs, newestBlock: 0 };
      await db.client.command({ query: STORAGE_STATEMENTS['record-progress'].sql, query_params });
    },
    /** How many messages Kafka has: one of each deletion in each partition. */
    async sentSoFar() {
      const offsets = await withAdmin(kafka, (admin) => admin.fetchTopicOffsets(topic));
      return offsets.map(({ high }) => Number(high)).reduce((sum, high) => sum + high);
    },
    links: async () =>
      (
        await db.read<{ link: string }>("SELECT DISTINCT anonymous_id || ' ' || user_id AS link FROM identity_links")
      ).map(({ link }) => link),
    unsettled: async () =>
      (
        await db.read<{ user_id: string }>(
          `SELECT user_id FROM identity_deletions GROUP BY workspace_id, user_id, version
           HAVING max(settled_at) = toDateTime64(0, 3, 'UTC') ORDER BY user_id`,
        )
      ).map(({ user_id }) => user_id),
  };
}

test('with a user the visitors are deleted that were the user’s then, and no others', async () => {
  const { db, visitors, erasure, sent, storeThrough, sentSoFar, links, unsettled } = await startLinkedVisitors();
  await db.store(
    batchOf(
      [],
      [
        fact('first', 'ada', 1),
        fact('first', 'bob', 2),
        // In any order: an earlier link is stored later.
        fact('second', 'ada', 6),
        fact('said', 'bob', 1),
        fact('said', 'ada', 2, 'say'),
        fact('taken back', 'ada', 1),
        fact('taken back', '', 3, 'say'),
        fact('later', 'ada', 20),
        fact('first', '', 20, 'say'),
        fact('of nobody who is deleted', 'bob', 1),
      ],
    ),
  );
  await db.store(batchOf([], [fact('second', 'bob', 5), deletion('ada', 10)]));
  await storeThrough(999);
  await visitors.takeRound();
  expect(await sentSoFar()).toBe(0);

  await storeThrough(1_000);
  await visitors.takeRound();
  expect(await sentSoFar()).toBe(2 * PARTITIONS);
  await eventually(() => sent.length).toBe(2 * PARTITIONS);
  const deleted = new Map(sent.map((row) => [row.id, row]));
  expect([...deleted.keys()].sort()).toEqual([visitorOf('first'), visitorOf('said')]);
  for (const row of sent) expect(row).toMatchObject({ kind: 'user', operation: 'delete', version: NOON_US + 10 });
  // They are not settled, nor erased, nor sent again before they come back.
  await visitors.takeRound();
  await erasure.takeRound();
  expect(await sentSoFar()).toBe(2 * PARTITIONS);
  expect(await unsettled()).toEqual(['ada']);
  expect(await links()).toContain('first ada');

  await db.store(batchOf([], [...deleted.values()]));
  await visitors.takeRound();
  expect(await unsettled()).toEqual([]);
  await erasure.takeRound();
  expect((await links()).toSorted()).toEqual([
    ...['first ', 'first bob', 'later ada', 'of nobody who is deleted bob', 'said bob', 'second bob', 'taken back '],
  ]);
});

test('what links a visitor is stored while the deletion of its user is there in part: of several replicas, one may get its tables in any order', async () => {
  const { db, links } = await startLinkedVisitors();
  const query_params = { version: NOON_US + 10 };
  const query = "INSERT INTO user_deletions (workspace_id, user_id, version) VALUES ('test', 'ada', {version:UInt64})";
  await db.client.command({ query, query_params });
  await db.store(batchOf([], [fact('first', 'ada', 1)]));
  expect(await links()).toEqual(['first ada']);
  // Once it is settled, its visitors are known to be deleted.
  await db.store(batchOf([], [deletion('ada', 10)]));
  await db.settle();
  await db.store(batchOf([], [fact('second', 'ada', 2), fact('third', 'ada', 20)]));
  expect((await links()).toSorted()).toEqual(['first ada', 'third ada']);
});

test('whose a visitor was depends on earlier deletions: a user who came back has what was linked since', async () => {
  const { db, visitors, sent, storeThrough } = await startLinkedVisitors();
  const before = [fact('old', 'ada', 1), fact('shared', 'ada', 2), fact('shared', 'bob', 3)];
  const back = [deletion('ada', 10), fact('old', 'cy', 12), fact('new', 'ada', 15)];
  await db.store(batchOf([], [...before, ...back, deletion('ada', 20), deletion('bob', 30)]));
  await storeThrough(60_000);
  await visitors.takeRound();
  await eventually(() => sent.length).toBe(4 * PARTITIONS);
  const found = sent.map(({ id, version }) => `${id.slice(1)} ${version - NOON_US}`);
  expect([...new Set(found)].sort()).toEqual(['new 20', 'old 10', 'shared 10', 'shared 30']);
});

test('what a deletion hides is stored while its visitors are not deleted, and dropped once they are', async () => {
  const { db, visitors, sent, storeThrough, links, unsettled } = await startLinkedVisitors();
  await db.store(batchOf([], [deletion('ada', 10)]));
  // An event that was accepted before the deletion comes after it: it is dropped, and its link is not.
  const event = eventRow({ user_id: 'ada', anonymous_id: 'late', received_at: NOON_US + 5 });
  await db.store(batchOf([event], [fact('late', 'ada', 5)]));
  expect(await db.read('SELECT 1 FROM events')).toEqual([]);
  expect(await links()).toEqual(['late ada']);
  await storeThrough(60_000);
  await visitors.takeRound();
  await eventually(() => sent.map(({ id }) => id)).toContain(visitorOf('late'));
  await db.store(batchOf([], sent.slice(0, 1)));
  await visitors.takeRound();
  expect(await unsettled()).toEqual([]);
  await db.store(batchOf([], [fact('too late', 'ada', 6), fact('again', 'ada', 11), fact('too late', '', 3, 'say')]));
  expect((await links()).toSorted()).toEqual(['again ada', 'late ada', 'too late ']);
});

test('with a user those are deleted who became it, then their visitors, and later deletions wait for them', async () => {
  const { db, visitors, erasure, sent, storeThrough, links, unsettled } = await startLinkedVisitors();
  const facts = [
    ...[merge('old', 'ada', 2), merge('gone', 'ada', 2), merge('gone', '', 3), merge('later', 'ada', 20)],
    ...[fact('phone', 'old', 1), fact('shared', 'old', 3), fact('shared', 'bob', 5), fact('desk', 'later', 1)],
    // Nobody said it.
    fact(mergeKeyOf('victim'), 'ada', 1),
  ];
  await db.store(batchOf([], facts));
  await db.store(batchOf([], [deletion('ada', 10), deletion('bob', 15)]));
  await storeThrough(60_000);
  const sentNow = () => [...new Set(sent.map(({ id, version }) => `${id} ${version - NOON_US}`))].sort();
  await visitors.takeRound();
  await eventually(sentNow).toEqual(['old 10']);
  expect(await unsettled()).toEqual(['ada', 'bob']);

  // Whose the shared visitor was when bob was deleted depends on this deletion.
  await db.store(batchOf([], sent.slice(0, 1)));
  await visitors.takeRound();
  const ofVisitors = [`${visitorOf('phone')} 10`, `${visitorOf('shared')} 10`, `${visitorOf('shared')} 15`];
  await eventually(sentNow).toEqual(['old 10', ...ofVisitors]);
  await db.store(batchOf([], [...new Map(sent.map((row) => [`${row.id} ${row.version}`, row])).values()]));
  await visitors.takeRound();
  expect(await unsettled()).toEqual([]);
  await erasure.takeRound();
  const left = [`${mergeKeyOf('gone')} `, `${mergeKeyOf('later')} ada`, 'desk later'];
  expect((await links()).toSorted()).toEqual(left.toSorted());
  // What comes late of either is dropped.
  await db.store(batchOf([], [merge('old', 'cy', 4), merge('cy', 'ada', 4), merge('old', '', 5)]));
  expect((await links()).toSorted()).toEqual(left.toSorted());
});

test('who became a deleted user is deleted with it, also where there is a later deletion of its own', async () => {
  const { db, visitors, sent, storeThrough, unsettled } = await startLinkedVisitors();
  const facts = [merge('old', 'ada', 1), fact('phone', 'old', 2), fact('phone', '', 15, 'say')];
  await db.store(batchOf([], [...facts, deletion('ada', 10), deletion('old', 20)]));
  await storeThrough(60_000);
  const sentNow = () => [...new Set(sent.map(({ id, version }) => `${id} ${version - NOON_US}`))].sort();
  await visitors.takeRound();
  await eventually(sentNow).toEqual(['old 10']);
  await db.store(batchOf([], sent.slice(0, 1)));
  await visitors.takeRound();
  await eventually(sentNow).toEqual(['old 10', `${visitorOf('phone')} 10`]);
  await db.store(batchOf([], sent));
  await visitors.takeRound();
  expect(await unsettled()).toEqual([]);
});

test('later deletions wait while that of a merged user is there in part: of several replicas, one may get its tables in any order', async () => {
  const { db, visitors, sent, sentSoFar, storeThrough, unsettled } = await startLinkedVisitors();
  const facts = [merge('old', 'ada', 2), fact('shared', 'old', 3), fact('shared', 'bob', 5)];
  await db.store(batchOf([], [...facts, deletion('ada', 10), deletion('bob', 15)]));
  await storeThrough(60_000);
  await visitors.takeRound();
  await eventually(sentSoFar).toBe(PARTITIONS);
  const query_params = { version: NOON_US + 10 };
  for (const table of ['user_deletions', 'identity_deletions']) {
    const query = `INSERT INTO ${table} (workspace_id, user_id, version) VALUES ('test', 'old', {version:UInt64})`;
    await db.client.command({ query, query_params });
  }
  await visitors.takeRound();
  expect(await sentSoFar()).toBe(PARTITIONS);
  expect(await unsettled()).toEqual(['ada', 'bob', 'old']);

  await db.store(batchOf([], [deletion('old', 10)]));
  await visitors.takeRound();
  const sentNow = () => [...new Set(sent.map(({ id, version }) => `${id} ${version - NOON_US}`))].sort();
  const shared = visitorOf('shared');
  await eventually(sentNow).toEqual(['old 10', `${shared} 10`, `${shared} 15`]);
});

test('the deletion of a merged user ends the merge, and leaves the other one', async () => {
  const { db, visitors, erasure, sent, storeThrough, links } = await startLinkedVisitors();
  await db.store(batchOf([], [merge('old', 'ada', 1), fact('phone', 'old', 1), fact('desk', 'ada', 1)]));
  await db.store(batchOf([], [deletion('old', 10), deletion('ada', 20)]));
  await storeThrough(60_000);
  await visitors.takeRound();
  await eventually(() => sent.length).toBe(2 * PARTITIONS);
  const found = sent.map(({ id, version }) => `${id.slice(1)} ${version - NOON_US}`);
  expect([...new Set(found)].sort()).toEqual(['desk 20', 'phone 10']);
  await db.store(batchOf([], sent));
  await visitors.takeRound();
  await erasure.takeRound();
  expect(await links()).toEqual([]);
});

test('events from before there were links link by the statement of the documentation', async () => {
  const db = await createTestStore(inject('clickhouseUrl'));
  onTestFinished(() => db.close());
  const named = { user_id: 'ada', anonymous_id: 'v' };
  await db.store(
    batchOf([
      eventRow({ ...named, received_at: NOON_US + 7 }),
      eventRow({ ...named, received_at: NOON_US + 3 }),
      eventRow({ anonymous_id: 'v' }),
      eventRow({ user_id: 'ada' }),
    ]),
  );
  const document = await readFile(new URL('../../../../docs/operate/upgrade.md', import.meta.url), 'utf8');
  const [, statement = ''] = /```sql\n(INSERT INTO identity_links[\s\S]+?)```/.exec(document) ?? [];
  for (let time = 0; time < 2; time += 1) await db.client.command({ query: statement });
  expect(await db.read('SELECT anonymous_id, user_id, version, said FROM identity_links FINAL')).toEqual([
    { anonymous_id: 'v', user_id: 'ada', version: NOON_US + 3, said: 0 },
  ]);
});
