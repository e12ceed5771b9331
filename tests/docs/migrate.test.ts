import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { findFreePorts } from '@sluice/local-stack/ports';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { readClickHouse } from '../kit/clickhouse.ts';
import { DocShell, docExamples, withoutVariation } from '../kit/doc-examples.ts';
import type { EventPage } from '../kit/records.ts';
import { type Service, startService } from '../kit/service.ts';
import { type Tenant, takeTenant } from '../kit/shared-pipeline.ts';

const EXAMPLES = new URL('../../examples/', import.meta.url);
const GUIDES = ['from-segment', 'from-rudderstack', 'from-posthog', 'from-trench'] as const;
type Guide = (typeof GUIDES)[number];

/** Each has a shell and a workspace of its own. */
const SHELLS = [
  ...GUIDES,
  ...['from-segment-bucket', 'from-rudderstack-bucket', 'months', 'trench-table', 'parameters', 'both'],
];
const keyOf = (shell: string) => `key-to-migrate-${shell}`;

let pipeline: Tenant;
let folder: string;
let trench: Service;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-migrate-'));
  // At once: the tests run side by side, and only one at a time can change the file of keys.
  pipeline = await takeTenant('migrate', Object.fromEntries(SHELLS.map((name) => [`migrate-${name}`, keyOf(name)])));
  const { services } = pipeline;
  const [port = 0] = await findFreePorts(1);
  const urls = { INGEST_URL: services['ingest-api'].url, QUERY_URL: services['query-api'].url };
  trench = startService('trench-api', port, urls);
  await trench.ready();
});
afterAll(async () => {
  await trench?.kill9();
  await rm(folder, { recursive: true });
});

const readGuide = (name: Guide) => readFile(new URL(`../../docs/guide/migrate/${name}.md`, import.meta.url), 'utf8');

/** A shell in a folder and a workspace of its own. */
async function openShell(name: string) {
  const path = join(folder, name);
  await mkdir(path);
  const key = keyOf(name);
  return { path, key, shell: await DocShell.create(pipeline, path, key, { 'http://localhost:4003': trench.url }) };
}

async function storedUuids(key: string): Promise<string[]> {
  await pipeline.drained();
  const { body } = await pipeline.get<EventPage>('/events?limit=1000', key);
  return body.results.map(({ uuid, timestamp }) => `${uuid} ${timestamp}`).sort();
}

test.concurrent.each(GUIDES)(
  'every command prints what docs/guide/migrate/%s.md shows, one after the other, and again',
  async (name) => {
    const text = await readGuide(name);
    const examples = docExamples(text);
    expect(examples).toHaveLength(text.split('```sh\n').length - 1);
    expect(examples.length).toBeGreaterThan(2);
    const { shell } = await openShell(name);
    for (const round of [1, 2]) {
      for (const { command, output } of examples) {
        await pipeline.drained();
        const printed = await shell.run(command);
        expect(withoutVariation(printed), `round ${round}: ${command}`).toEqual(withoutVariation(output));
      }
    }
  },
);

/** The lines of a guide that are shown for the reader's own files. */
function commandsOf(text: string): string[] {
  return [...text.matchAll(/^ {4}(.*npm run import -- .*)$/gm)].map(([, command = '']) => command);
}

test.concurrent.each([
  ['from-segment', 'segment-archive', 'segment-logs', ['1740787200000', '1740960000000', '1741132800000'], 8],
  ['from-rudderstack', 'rudderstack-archive', 'rudder-logs', ['2025-03-01', '2025-03-02', '2025-03-03'], 6],
] as const)('%s: all files of a bucket are one import, day by day', async (name, example, bucket, days, events) => {
  const [command, ...others] = commandsOf(await readGuide(name));
  expect(others).toEqual([]);
  const lines = (await readFile(new URL(`${example}.ndjson`, EXAMPLES), 'utf8')).trim().split('\n');
  const { path, key, shell } = await openShell(`${name}-bucket`);
  // The source that comes first by name has the days that come last.
  for (const [index, [day, source]] of [
    [days[0], 'z'],
    [days[1], 'm'],
    [days[2], 'a'],
  ].entries()) {
    const file = join(path, bucket, String(source), String(day));
    await mkdir(file, { recursive: true });
    const third = lines.slice(Math.floor((index * lines.length) / 3), Math.floor(((index + 1) * lines.length) / 3));
    await writeFile(join(file, '1.json.gz'), gzipSync(`${third.join('\n')}\n`));
  }
  expect(await shell.run(command ?? '')).toContain(
    `${lines.length - (name === 'from-segment' ? 1 : 0)} calls were accepted`,
  );
  expect(await storedUuids(key)).toHaveLength(events);
  const user = name === 'from-segment' ? 'jane' : 'joe';
  const { body } = await pipeline.get<{ properties: object }>(`/users/${user}`, key);
  expect(body.properties).toMatchObject({ plan: 'pro' });
});

test.concurrent('a year in which days begin with the month is sorted as the guide says', async () => {
  const text = await readGuide('from-rudderstack');
  const sort = /`(sort [^`]+)`/.exec(text)?.[1] ?? '';
  const { shell } = await openShell('months');
  const paths = ['r/b/01-02-2025/2.gz', 'r/a/12-31-2024/1.gz', 'r/a/02-01-2025/3.gz'];
  expect((await shell.run(`printf '${paths.join('\\n')}\\n' | ${sort}`)).trim().split('\n')).toEqual([
    'r/a/12-31-2024/1.gz',
    'r/b/01-02-2025/2.gz',
    'r/a/02-01-2025/3.gz',
  ]);
});

test.concurrent('from-trench: the table of a real ClickHouse, exported as the guide says, is imported', async () => {
  const text = await readGuide('from-trench');
  const select = /clickhouse-client --query '([^']+)'/.exec(text)?.[1] ?? '';
  const command = /^npm run import -- --format trench events\.ndjson\.gz$/m.exec(text)?.[0] ?? '';
  const clickhouseUrl = inject('clickhouseUrl');
  const database = `${pipeline.database}_trench`;
  await readClickHouse(clickhouseUrl, `CREATE DATABASE ${database}`);
  try {
    // The columns that Trench's migrations give the table.
    const columns =
      'uuid UUID, type String, event String, user_id String, group_id String, anonymous_id String, instance_id String, ' +
      "properties String, traits String, context String, timestamp DateTime64(6, 'UTC'), parsed_at DateTime64(6, 'UTC')";
    const table = `CREATE TABLE events (${columns}) ENGINE = MergeTree ORDER BY (instance_id, user_id, timestamp)`;
    await readClickHouse(clickhouseUrl, table, { database });
    const rows = await readFile(new URL('trench-events.ndjson', EXAMPLES), 'utf8');
    await readClickHouse(clickhouseUrl, `INSERT INTO events FORMAT JSONEachRow ${rows}`, { database });
    const { path, key, shell } = await openShell('trench-table');
    await writeFile(
      join(path, 'events.ndjson.gz'),
      gzipSync(await readClickHouse(clickhouseUrl, select, { database })),
    );
    expect(await shell.run(command)).toContain('7 calls were accepted');
    expect(await storedUuids(key)).toHaveLength(7);
    const { body } = await pipeline.get<{ properties: object }>('/users/ada', key);
    expect(body.properties).toEqual({ email: 'ada@acme.example', plan: 'pro' });
    const organization = await pipeline.get<{ properties: object }>('/organizations/acme', key);
    expect(organization.body.properties).toEqual({ name: 'Acme', plan: 'pro' });
  } finally {
    await readClickHouse(clickhouseUrl, `DROP DATABASE ${database} SYNC`);
  }
});

/** The parameters of Trench's `GET /events`, with values that its documentation shows. */
const TRENCH_PARAMETERS = {
  event: 'user_signup',
  uuid: '123e4567-e89b-12d3-a456-426614174000',
  userId: 'user-123',
  groupId: 'group-456',
  anonymousId: 'anon-789',
  instanceId: 'instance-101112',
  startDate: '2022-01-01T00:00:00Z',
  endDate: '2022-12-31T23:59:59Z',
  limit: '100',
  offset: '0',
  orderByField: 'timestamp',
  orderByDirection: 'ASC',
};

test.concurrent('from-trench: Sluice takes the parameters of GET /events that the guide calls the same', async () => {
  const text = await readGuide('from-trench');
  const { key } = await openShell('parameters');
  const query = new URLSearchParams(TRENCH_PARAMETERS);
  const { status, body } = await pipeline.get<EventPage>(`/events?${query}`, key);
  expect([status, body.results]).toEqual([200, []]);
  for (const name of Object.keys(TRENCH_PARAMETERS)) expect(text).toContain(`\`${name}\``);
  for (const field of ['timestamp', 'event', 'type', 'uuid', 'userId', 'receivedAt']) {
    expect((await pipeline.get(`/events?orderByField=${field}`, key)).status).toBe(200);
  }
  for (const refused of ['orderByField=user_id', 'event=', 'colour=red']) {
    expect((await pipeline.get(`/events?${refused}`, key)).status).toBe(400);
  }
});

test.concurrent('an archived call is stored as its client would have stored it: a call that was sent to both is one event', async () => {
  const { key, shell } = await openShell('both');
  await shell.run('npm run import -- --format segment examples/segment-archive.ndjson');
  const imported = await storedUuids(key);
  const lines = (await readFile(new URL('segment-archive.ndjson', EXAMPLES), 'utf8')).trim().split('\n');
  const batch = lines.slice(0, 9).map((line) => {
    const { originalTimestamp, receivedAt, sentAt, projectId, ...call } = JSON.parse(line) as Record<string, unknown>;
    return { ...call, timestamp: originalTimestamp };
  });
  const { status } = await pipeline.submit(
    { batch },
    { path: '/v1/batch', key, headers: { authorization: `Bearer ${key}` } },
  );
  expect(status).toBe(200);
  expect(await storedUuids(key)).toEqual(imported);
  expect(imported).toHaveLength(8);
});
