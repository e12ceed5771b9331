import { randomUUID } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { withAdmin } from '@sluice/shared/kafka/topics';
import { messageHeaders } from '@sluice/shared/rows';
import { until } from '@sluice/shared/testing/until';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { type Audited, auditPipeline, differencesOf, sumsOf } from '../kit/audit.ts';
import { sluice } from '../kit/backups.ts';
import { sendCalls, track } from '../kit/calls.ts';
import { readClickHouse } from '../kit/clickhouse.ts';
import { deleteRecords } from '../kit/delete-records.ts';
import { type OperatedPipeline, startOperated } from '../kit/halted-partitions.ts';
import { kafkaClient } from '../kit/kafka-client.ts';
import type { Pipeline } from '../kit/pipeline.ts';
import { uuidInPartition } from '../kit/uuid-in-partition.ts';

const [kafkaBrokers, clickhouseUrl] = [inject('kafkaBrokers'), inject('clickhouseUrl')];
const kafka = kafkaClient(kafkaBrokers);

/** All tests use it, one after the other. */
let operated: OperatedPipeline;
let pipeline: Pipeline;
/** The result of the last audit: each of what is planted costs a pause. */
let last: Audited;

beforeAll(async () => {
  operated = await startOperated({ kafkaBrokers, clickhouseUrl, name: 'audit' });
  pipeline = operated.running;
});
afterAll(() => operated?.[Symbol.asyncDispose]());

const sql = (statement: string) => readClickHouse(clickhouseUrl, statement, { database: pipeline.database });

interface Event {
  readonly event: string;
  readonly uuid: string;
  readonly timestamp?: string;
}

const TIMESTAMP = '2026-03-01T12:00:00.000Z';

/** An event that is the same whenever it is sent. */
const timed = (uuid: string = randomUUID()): Event => ({ event: 'e', uuid, timestamp: TIMESTAMP });
/** An event that is stamped when it is received. */
const stamped = (uuid: string = randomUUID()): Event => ({ event: 'e', uuid });

async function submit(foreignUserId: string, ...events: readonly Event[]): Promise<void> {
  const body = { foreignUserGroupId: 'g', foreignUserId, events };
  await until('a 202', async () => (await pipeline.submit(body)).status === 202);
}

/** Sends lines to Kafka as they are, which ingest-api would not. */
async function produce(lines: readonly string[], format = '1'): Promise<void> {
  const producer = kafka.producer({ allowAutoTopicCreation: false });
  await producer.connect();
  const headers = { ...messageHeaders('events'), format };
  await producer.send({
    topic: 'audit.events',
    acks: -1,
    messages: [{ value: `${lines.join('\n')}\n`, headers, partition: 1 }],
  });
  await producer.disconnect();
}

test('repeats, deletions, dead letters and rejected calls are accounted for', async () => {
  const [kept, again, across, before] = [timed(), timed(), timed(), timed()];
  await submit('ada', kept, stamped(), timed());
  await submit('ada', kept, again, again);
  await pipeline.drained();
  await submit('bob', kept, again);
  // A stamped one is a repeat for some minutes.
  const moment = stamped();
  await submit('ada', moment, moment);
  await pipeline.drained();
  await submit('ada', moment);
  // Sent again for another user before the first one is deleted, and after a deletion.
  await submit('gone', across, before, timed());
  await pipeline.drained();
  await submit('bob', across);
  await pipeline.drained();
  expect((await pipeline.deleteUser('gone')).status).toBe(202);
  await pipeline.drained();
  await submit('bob', before);
  await submit('gone', timed());
  // What cannot be stored.
  const row = (event: string) => {
    const now = Date.now();
    return JSON.stringify({
      workspace_id: 'test',
      timestamp: now,
      uuid: randomUUID(),
      event,
      received_at: now * 1_000,
    });
  };
  await produce([row('e'), 'poison', 'poison', '{"workspace_id":"test"}', row('')]);
  await produce(['?'], '99');
  // One links its visitor to its user.
  const linking = { ...track('call', 1), userId: 'ada', anonymousId: 'device' };
  await sendCalls(pipeline, [linking, { ...track('call', 2), timestamp: '2099-01-01T00:00:00.000Z' }]);
  await pipeline.drained();
  const books = await auditPipeline(pipeline);
  expect(books.differences).toEqual([]);
  expect(sumsOf(books, 'events')).toEqual({ accepted: 24, stored: 9, repeats: 6, deleted: 4, dead_letters: 5 });
  expect(sumsOf(books, 'rejected')).toEqual({ accepted: 1, dead_letters: 1 });
  expect(sumsOf(books, 'changes')).toMatchObject({ accepted: 2, stored: 2 });
  expect(books.notes).toEqual([]);
  const halves = [
    await auditPipeline(pipeline, { share: 1, shares: 2 }),
    await auditPipeline(pipeline, { share: 2, shares: 2 }),
  ];
  expect(halves.flatMap(({ differences }) => differences)).toEqual([]);
  const accepted = halves.map((half) => sumsOf(half, 'events').accepted ?? 0);
  expect([Math.min(...accepted) > 0, plus(accepted[0], accepted[1] ?? 0)]).toEqual([true, 24]);
});

test('an hour that is not over is not looked at', async () => {
  await using work = await makeTempDir();
  const audit = (...args: string[]) => sluice(pipeline, ['audit', '--work', work.path, ...args]);
  expect(await audit()).toEqual({ code: 0, output: expect.stringContaining('nothing to look at yet') });
  expect(await audit('--until', '2100-01-01')).toMatchObject({ code: 2 });
  // Nothing is left of them.
  expect(await readdir(work.path)).toEqual([]);
});

test('what a halted partition has is waiting, and given up once an operator resumes it behind that', async () => {
  const { operate } = operated;
  const sums = async () => sumsOf(await auditPipeline(pipeline, { workspace: 'test' }), 'events');
  const before = await sums();
  expect((await operate('halt', 'audit.events/1')).code).toBe(0);
  await until('the halt to be seen', async () => (await readyOf()).includes('audit.events/1 is halted'));
  await submit('ada', timed(uuidInPartition(2, (partition) => partition === 1)));
  const waiting = await auditPipeline(pipeline, { workspace: 'test' });
  expect(sumsOf(waiting, 'events')).toEqual({ ...before, accepted: plus(before.accepted, 1), waiting: 1 });
  expect(waiting.notes).toEqual([expect.stringContaining('audit.events/1 is halted')]);
  const { high = '' } = (await bounds()).find(({ partition }) => partition === 1) ?? {};
  expect((await operate('resume', 'audit.events/1', '--from', high, '--yes')).code).toBe(0);
  await submit('ada', timed(uuidInPartition(2, (partition) => partition === 1)));
  await pipeline.drained();
  expect(await sums()).toEqual({
    ...before,
    accepted: plus(before.accepted, 2),
    stored: plus(before.stored, 1),
    given_up: 1,
  });
});

test('each planted fault is named, and nothing else', async () => {
  const [erased, twice, again] = [timed(), timed(), timed()];
  await submit('ada', erased, twice, again, timed());
  await setPlan('carl', 'old');
  await setPlan('carl', 'new');
  expect((await pipeline.deleteUser('nobody')).status).toBe(202);
  await produce(['a lost dead letter']);
  await sendCalls(pipeline, [{ ...track('lost call', 3), timestamp: '2099-01-01T00:00:00.000Z' }]);
  await pipeline.drained();
  const skipped = await skipEvents();
  const rejected = await sql("SELECT id FROM dead_letters FINAL WHERE kind = 'rejected' AND row LIKE '%lost call%'");
  await sql(`ALTER TABLE events DELETE WHERE uuid = '${erased.uuid}'`);
  await sql("ALTER TABLE dead_letters DELETE WHERE row = 'a lost dead letter' OR row LIKE '%lost call%'");
  await sql("ALTER TABLE user_deletions DELETE WHERE user_id = 'nobody'");
  await sql("ALTER TABLE entity_properties DELETE WHERE id = 'carl'");
  await sql(
    `INSERT INTO entity_properties (workspace_id, kind, id, property, register)
     VALUES ('test', 'user', 'carl', 'plan', (1000000, '${randomUUID()}', 'set', '"older"'))`,
  );
  // Merges would remove the second of two rows of one partition.
  await sql('SYSTEM STOP MERGES events');
  // In the same partition of the table, and in another one.
  await sql(`INSERT INTO events SELECT * FROM events WHERE uuid = '${twice.uuid}'`);
  await sql(
    `INSERT INTO events SELECT * REPLACE (timestamp + INTERVAL 1 DAY AS received_at) FROM events WHERE uuid = '${again.uuid}'`,
  );
  const invented = randomUUID();
  await sql(
    `INSERT INTO events (workspace_id, timestamp, uuid, event, received_at)
     VALUES ('test', now64(3), '${invented}', 'e', now64(6) + INTERVAL 30 MINUTE)`,
  );
  const books = await auditPipeline(pipeline);
  last = books;
  expect(differencesOf(books)).toEqual(
    [
      `missing of events: ${erased.uuid}`,
      `missing of events: ${skipped}`,
      'missing of events: ',
      `missing of rejected: ${rejected}`,
      'missing of changes: ["user","nobody","delete",""]',
      'missing of changes: ["user","carl","set","plan"]',
      'missing of changes: ["user","carl","set","plan"]',
      `duplicate of events: ${twice.uuid}`,
      `duplicate of events: ${again.uuid}`,
      `invented of events: ${invented}`,
    ].sort(),
  );
  const [recorded] = JSON.parse(
    await sql(
      `SELECT missing, invented, duplicates, (SELECT sum(missing) FROM audited_hours FINAL), balanced_through < until
       FROM audits FINAL WHERE id = '${books.id}' FORMAT JSONCompactEachRow`,
    ).then((row) => `[${row}]`),
  );
  expect(recorded).toEqual([7, 1, 2, 7, 1]);
  await sql('SYSTEM START MERGES events');
});

test('what may repeat an event that the log has lost, and whose user was deleted since, is unknown', async () => {
  const inSecond = () => uuidInPartition(2, (partition) => partition === 1);
  const [uuid, newer] = [inSecond(), inSecond()];
  await submit('ada', timed(uuid), stamped(newer));
  await pipeline.drained();
  await sql(`ALTER TABLE events DELETE WHERE uuid IN ('${uuid}', '${newer}')`);
  expect((await pipeline.deleteUser('somebody')).status).toBe(202);
  await pipeline.drained();
  last = await auditPipeline(pipeline);
  const [older, after] = [`missing of events: ${uuid}`, `missing of events: ${newer}`];
  expect(differencesOf(last)).toEqual(expect.arrayContaining([older, after]));
  // The log was cut off some days ago, and resumed.
  await sql(
    `INSERT INTO writer_halts (group_id, topic, partition, reason, detail, halted_at, resumed_at)
     VALUES ('audit-writer', 'audit.events', 1, 'the log was cut off', 'it ended', now64(3) - INTERVAL 3 DAY, now64(3))`,
  );
  const lost = await auditPipeline(pipeline);
  expect(differencesOf(lost)).not.toContain(older);
  expect(differencesOf(lost)).toContain(after);
  expect(sumsOf(lost, 'events').unknown).toBeGreaterThan(0);
  // A halt by hand takes the place of that halt, and it is known all the same.
  expect((await operated.operate('halt', 'audit.events/1')).code).toBe(0);
  await until('the halt to be seen', async () => (await readyOf()).includes('audit.events/1 is halted'));
  expect((await operated.operate('resume', 'audit.events/1', '--from', 'stored', '--yes')).code).toBe(0);
  const known = await auditPipeline(pipeline);
  expect(missingOf(known)).toEqual(missingOf(lost));
  expect(sumsOf(known, 'events').unknown).toBe(sumsOf(lost, 'events').unknown);
  await sql('TRUNCATE TABLE log_gaps');
});

test('what the log no longer has is said, and is not taken for invented', async () => {
  const before = differencesOf(last);
  await deleteRecords(kafka, 'audit.events', 0);
  const after = await auditPipeline(pipeline);
  last = after;
  expect(before).toEqual(expect.arrayContaining(differencesOf(after)));
  expect(after.notes).toEqual([
    expect.stringMatching(/^audit\.events\/0 begins at offset \d+, .* \d+ stored events/),
    expect.stringMatching(/^Where \d+ rows? (is|are), nothing that is left says/),
  ]);
});

test('what has expired is not missing', async () => {
  await sql("INSERT INTO retention (workspace_id, days) VALUES ('test', 30)");
  const after = await auditPipeline(pipeline);
  const sums = sumsOf(after, 'events');
  expect(sums.expired).toBeGreaterThan(0);
  expect(sums.accepted).toBe(sumsOf(last, 'events').accepted);
  // Those that are missing have a timestamp that has expired, but for the one that was stamped.
  expect(missingOf(after)).toHaveLength(1);
});

/** Skips an event: moves the position on while no writer runs. Returns its uuid. */
async function skipEvents(): Promise<string> {
  const { writer } = pipeline.services;
  expect(await writer.stop()).toBe(0);
  const uuid = uuidInPartition(2, (partition) => partition === 0);
  await submit('ada', timed(uuid));
  const { high = '' } = (await bounds()).find(({ partition }) => partition === 0) ?? {};
  await sql(
    `INSERT INTO writer_positions (group_id, topic, partition, next_offset, fingerprint, leader_epoch, incarnation, generation)
     VALUES ('audit-writer', 'audit.events', 0, ${high}, '', -1, 0, 0)`,
  );
  await pipeline.restart('writer');
  await pipeline.drained();
  return uuid;
}

async function setPlan(foreignId: string, plan: string): Promise<void> {
  const body = { foreignId, properties: { plan } };
  await until('a 202', async () => (await pipeline.submit(body, { path: '/v1/public/users' })).status === 202);
}

const bounds = () => withAdmin(kafka, (admin) => admin.fetchTopicOffsets('audit.events'));

const readyOf = async () => await (await fetch(`${pipeline.services.writer.url}/readyz`)).text();

/** The uuids of missing events. */
const missingOf = (audited: Audited) =>
  differencesOf(audited).flatMap((text) => /^missing of events: (.+)/.exec(text)?.[1] ?? []);

const plus = (count: number | undefined, more: number) => (count ?? 0) + more;
