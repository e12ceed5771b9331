import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { readClickHouse } from '../kit/clickhouse.ts';
import { COMMITS, type ExpectedCommits, readExpectedCommits, writeCommitsOf } from '../kit/commits.ts';
import { runImporter } from '../kit/importer.ts';
import { type Pipeline, startPipeline } from '../kit/pipeline.ts';
import type { EntityRecord, EventPage } from '../kit/records.ts';

/** The organizations whose commits are imported again: a third of the events. */
const REPEATED = ['graphile/crystal', 'umami-software/umami', 'fastify/fastify', 'tulios/kafkajs'];

let pipeline: Pipeline;
let expected: ExpectedCommits;

beforeAll(async () => {
  expected = await readExpectedCommits();
  pipeline = await startPipeline({
    kafkaBrokers: inject('kafkaBrokers'),
    clickhouseUrl: inject('clickhouseUrl'),
    name: 'commits',
  });
});
afterAll(() => pipeline?.stop());

async function importFile(file: string): Promise<string> {
  const startedAt = performance.now();
  const { code, output } = await runImporter(['--url', pipeline.services['ingest-api'].url, file], pipeline.key);
  expect(code, output).toBe(0);
  await pipeline.settled(expected.events);
  await pipeline.drained();
  console.log(`imported and stored in ${((performance.now() - startedAt) / 1_000).toFixed(1)} s`);
  return output;
}

async function events(query: string): Promise<EventPage> {
  const { status, body } = await pipeline.get<EventPage>(`/events?${query}`);
  expect(status).toBe(200);
  return body;
}

const total = async (query: string): Promise<number | null> => (await events(`limit=0&${query}`)).total;

/** The keys of all events of a query in order, read page by page. */
async function allKeys(query: string, by: 'cursor' | 'offset'): Promise<string[]> {
  const keys: string[] = [];
  let next: string | null = '';
  while (next !== null) {
    const page: EventPage = await events(`${query}&limit=1000&total=none${next}`);
    keys.push(...page.results.map(({ timestamp, uuid }) => `${timestamp} ${uuid}`));
    const more = by === 'cursor' ? page.nextCursor !== null : page.results.length === page.limit;
    next = !more ? null : by === 'cursor' ? `&cursor=${page.nextCursor}` : `&offset=${keys.length}`;
  }
  return keys;
}

/** A function, because vitest runs the body of a `describe` before `expected` is read. */
function checkAll(): void {
  test('the total, and that of each event name and each organization', async () => {
    expect(await total('')).toBe(expected.events);
    for (const [name, count] of Object.entries(expected.eventNames))
      expect(await total(`event=${encodeURIComponent(name)}`)).toBe(count);
    for (const [id, count] of Object.entries(expected.perOrg))
      expect(await total(`groupId=${encodeURIComponent(id)}`)).toBe(count);
  });

  test('the most active users', async () => {
    for (const [id, count] of Object.entries(expected.topUsers)) expect(await total(`userId=${id}`)).toBe(count);
  });

  test("the organizations' properties, and every user", async () => {
    for (const [id, properties] of Object.entries(expected.organizations)) {
      const { body } = await pipeline.get<EntityRecord>(`/organizations/${encodeURIComponent(id)}`);
      expect(body.properties).toEqual(properties);
    }
    const { body } = await pipeline.get<{ results: EntityRecord[] }>('/organizations');
    expect(body.results.map(({ foreignUserGroupId }) => foreignUserGroupId).sort()).toEqual(
      Object.keys(expected.organizations).sort(),
    );
    let users = 0;
    for (let cursor = ''; ; ) {
      const page = await pipeline.get<{ results: EntityRecord[]; nextCursor: string | null }>(
        `/users?limit=1000${cursor}`,
      );
      users += page.body.results.length;
      if (page.body.nextCursor === null) break;
      cursor = `&cursor=${page.body.nextCursor}`;
    }
    expect(users).toBe(expected.users);
  });

  test('the first and the last timestamp, of the events and of who they are about', async () => {
    const [first, last] = await Promise.all([events('limit=1&orderByDirection=ASC'), events('limit=1')]);
    expect(first.results[0]?.timestamp).toBe(expected.first);
    expect(last.results[0]?.timestamp).toBe(expected.last);
    const id = 'apache/kafka';
    const [oldest, newest] = await Promise.all([
      events(`groupId=${id}&limit=1&orderByDirection=ASC`),
      events(`groupId=${id}&limit=1`),
    ]);
    const { body } = await pipeline.get<EntityRecord>(`/organizations/${encodeURIComponent(id)}`);
    expect([body.firstSeenAt, body.lastSeenAt]).toEqual([oldest.results[0]?.timestamp, newest.results[0]?.timestamp]);
  });

  test('pages by cursor and by offset neither skip nor repeat', async () => {
    const query = 'groupId=umami-software/umami';
    const newest = await allKeys(query, 'cursor');
    expect(new Set(newest).size).toBe(expected.perOrg['umami-software/umami']);
    expect(newest).toEqual(newest.toSorted().reverse());
    expect(await allKeys(query, 'offset')).toEqual(newest);
    expect(await allKeys(`${query}&orderByDirection=ASC`, 'cursor')).toEqual(newest.toReversed());
  });
}

describe('after importing the history of 17 repositories', () => {
  beforeAll(async () => {
    expect(await importFile(COMMITS)).toContain(expected.submissions.toLocaleString('en'));
  });
  checkAll();
});

describe('after importing a third of it again', () => {
  beforeAll(async () => {
    await using folder = await makeTempDir();
    const { file, submissions } = await writeCommitsOf(REPEATED, folder.path);
    expect(await importFile(file)).toContain(submissions.toLocaleString('en'));
  });
  checkAll();

  test('no row is stored twice', async () => {
    const sql = `SELECT count(), uniqExact(workspace_id, timestamp, uuid) FROM ${pipeline.database}.events FORMAT TSV`;
    expect(await readClickHouse(inject('clickhouseUrl'), sql)).toBe(`${expected.events}\t${expected.events}`);
  });
});
