import { randomUUID } from 'node:crypto';
import { ADMINISTRATOR, WRITER_ACCOUNT } from '@sluice/shared/clickhouse/testing/test-accounts';
import { eventually } from '@sluice/shared/testing/eventually';
import { expect, test } from 'vitest';
import { readClickHouse } from '../kit/clickhouse.ts';
import { startCloud } from '../kit/cloud.ts';

interface Sent {
  readonly account?: Readonly<Record<'CLICKHOUSE_USER' | 'CLICKHOUSE_PASSWORD', string>>;
  readonly parameters?: Readonly<Record<string, string>>;
  readonly body?: FormData | string;
}

async function send(url: string, sql: string, { account = ADMINISTRATOR, parameters = {}, body = '' }: Sent = {}) {
  const headers = { 'x-clickhouse-user': account.CLICKHOUSE_USER, 'x-clickhouse-key': account.CLICKHOUSE_PASSWORD };
  const address = `${url}/?${new URLSearchParams({ query: sql, database: 'test_stand_in', ...parameters })}`;
  const response = await fetch(address, { method: 'POST', headers, body });
  return { status: response.status, text: (await response.text()).trim() };
}

const SEQUENTIAL = { select_sequential_consistency: '1' };

test('what stands in for Cloud has one address, tables of all replicas, and reads that are as new as they ask for', async () => {
  await using cloud = await startCloud();
  const { url } = cloud;
  const [r1, r2] = cloud.servers;
  if (!r1 || !r2) throw new Error('there are not two');
  await send(url, 'CREATE DATABASE test_stand_in', { parameters: { database: 'default' } });
  const table = '  ENGINE = ReplacingMergeTree(at) ORDER BY name';
  expect(await send(url, `CREATE TABLE numbers_of (name String, at DateTime)\n${table}`)).toMatchObject({
    status: 200,
  });

  const names = await Promise.all([1, 2, 3, 4].map(() => send(url, 'SELECT tcpPort()')));
  expect(new Set(names.map(({ text }) => text)).size).toBe(2);

  // What is committed at one is found at the next one, if the statement asks for it.
  await readClickHouse(r2.url, 'SYSTEM STOP FETCHES test_stand_in.numbers_of');
  await readClickHouse(r1.url, "INSERT INTO test_stand_in.numbers_of VALUES ('a', now())");
  const count = 'SELECT count() FROM numbers_of';
  const before = await Promise.all([send(url, count), send(url, count)]);
  expect(before.map(({ text }) => text).toSorted()).toEqual(['0', '1']);
  const both = [send(url, count, { parameters: SEQUENTIAL }), send(url, count, { parameters: SEQUENTIAL })];
  await readClickHouse(r2.url, 'SYSTEM START FETCHES test_stand_in.numbers_of');
  expect((await Promise.all(both)).map(({ text }) => text)).toEqual(['1', '1']);

  // Changes of tables reach all.
  await send(url, 'ALTER TABLE numbers_of ADD COLUMN number UInt8', { parameters: { alter_sync: '3' } });
  for (const { url: own } of cloud.servers)
    expect(await readClickHouse(own, 'DESCRIBE test_stand_in.numbers_of FORMAT TSV')).toContain('number');

  // Nothing lasts from one statement to the next.
  const session = await send(url, 'SELECT 1', { parameters: { session_id: randomUUID() } });
  expect(session).toMatchObject({ status: 501, text: expect.stringContaining('SUPPORT_IS_DISABLED') });
  expect((await send(url, 'CREATE TEMPORARY TABLE t (a UInt8)')).status).toBe(501);

  // Rows that travel with a statement.
  const form = new FormData();
  form.set('carried', new Blob(['{"name":"b"}\n{"name":"a"}\n']), 'carried');
  const parameters = { ...SEQUENTIAL, carried_format: 'JSONEachRow', carried_structure: 'name String' };
  const insert =
    'INSERT INTO numbers_of (name) SELECT name FROM carried WHERE name NOT IN (SELECT name FROM numbers_of)';
  expect(await send(url, insert, { parameters, body: form })).toMatchObject({ status: 200 });
  expect((await send(url, count, { parameters: SEQUENTIAL })).text).toBe('2');
});

test('in what stands in for Cloud, statements of all replicas are found and ended, or that fails', async () => {
  await using cloud = await startCloud();
  const { url } = cloud;
  const as = { account: WRITER_ACCOUNT, parameters: { database: 'default' } };
  const slow = ['a', 'b'].map((name) =>
    send(url, 'SELECT sum(sleepEachRow(1)) FROM numbers(100)', {
      ...as,
      parameters: { ...as.parameters, query_id: `of-test/${name}`, max_block_size: '1' },
    }),
  );
  const find =
    "SELECT query_id FROM clusterAllReplicas(default, system.processes) WHERE startsWith(query_id, 'of-test/') ORDER BY 1";
  await eventually(async () => (await send(url, find, as)).text).toBe('of-test/a\nof-test/b');
  const kill = "KILL QUERY ON CLUSTER default WHERE startsWith(query_id, 'of-test/') SYNC";
  expect(await send(url, kill, as)).toMatchObject({ status: 200 });
  expect((await Promise.all(slow)).every(({ text }) => text.includes('QUERY_WAS_CANCELLED'))).toBe(true);
  expect((await send(url, find, as)).text).toBe('');
  await cloud.servers[1]?.kill9();
  expect((await send(url, find, as)).status).not.toBe(200);
  await expect(send(url, kill, as)).rejects.toThrow();
});
