import { expect, inject, test } from 'vitest';
import { NOWHERE, startServers, stateOf, type TestServer } from '../testing/test-servers.ts';

const engines = { clickhouseUrl: inject('clickhouseUrl'), kafkaBrokers: inject('kafkaBrokers') };

test('status shows every server, or the one that is named; a server that does not answer is no reason to hide the others', async () => {
  await using servers = await startServers(engines, ['a1', 'a2']);
  const all = await servers.sluice(['writer', 'status']);
  expect(all.code).toBe(0);
  expect(all.stdout).toMatch(/^server a1\npartition .*\n(.*active\n){4}server a2\npartition .*\n(.*active\n){4}$/);
  const one = await servers.sluice(['writer', 'status', '--server', 'a2']);
  expect([one.code, one.stdout]).toEqual([0, expect.stringMatching(/^partition .*\n(.*active\n){4}$/)]);

  await servers.writeFile({ a1: { url: NOWHERE }, a2: {} });
  const away = await servers.sluice(['writer', 'status']);
  expect(away.code).toBe(1);
  expect(away.stdout).toMatch(/^server a1\nserver a2\npartition /);
  expect(away.stderr).toContain('Is Sluice running at 127.0.0.1:1?');
});

test('without a file of servers, nothing is recorded of messages that are given up', async () => {
  await using servers = await startServers(engines, ['a1']);
  const { a1 } = servers.of;
  await a1.client.command({ query: "ALTER TABLE database_identity UPDATE server = '' WHERE 1" });
  const env = { CLICKHOUSE_SERVERS_FILE: '', CLICKHOUSE_URL: engines.clickhouseUrl, CLICKHOUSE_DATABASE: a1.database };
  const own = { ...env, KAFKA_GROUP_ID: a1.group };
  const partition = `${servers.topics.events}/0`;
  const producer = servers.kafka.producer();
  await producer.connect();
  await producer.send({ topic: servers.topics.events, messages: [{ value: 'x', partition: 0 }] });
  await producer.disconnect();
  expect(await servers.sluice(['writer', 'halt', partition], own)).toMatchObject({ code: 0 });
  const resumed = await servers.sluice(['writer', 'resume', partition, '--from', '1', '--yes'], own);
  expect([resumed.code, resumed.stdout]).toEqual([
    0,
    expect.stringMatching(/left out: 1 messages\.\n.* is resumed\n$/),
  ]);
  expect(await stateOf(a1)).toMatchObject({ state: 'complete' });
});

test('grow-partitions records the number on all servers, and refuses while one of them is not drained or does not answer', async () => {
  await using servers = await startServers(engines, ['a1', 'a2']);
  const { a1, a2 } = servers.of;
  for (const server of [a1, a2]) {
    for (const topic of Object.values(servers.topics))
      await server.insert('topic_partitions', { topic, partitions: 2 });
  }
  const recorded = async (server: TestServer) =>
    (await server.read<{ n: number }>('SELECT DISTINCT partitions AS n FROM topic_partitions')).map(({ n }) => n);
  const grow = () => servers.sluice(['writer', 'grow-partitions', '3', '--yes']);
  await createClock(servers);

  await servers.sluice(['writer', 'halt', `${servers.topics.events}/1`, '--server', 'a2']);
  const refused = await grow();
  expect([refused.code, refused.stdout]).toEqual([
    1,
    `${servers.topics.events}/1 (server a2) is halted: by hand. Resume it, and let the writers store what it holds.\nNothing was changed.\n`,
  ]);
  await servers.sluice(['writer', 'resume', '--all', '--from', 'stored', '--yes', '--server', 'a2']);

  await servers.writeFile({ a1: {}, a2: { url: NOWHERE } });
  expect(await grow()).toMatchObject({ code: 1, stderr: expect.stringContaining('a2: ') });
  await servers.writeFile({ a1: { partitions: '0-0' }, a2: { partitions: '1-1' } });
  expect(await grow()).toMatchObject({
    code: 1,
    stdout: expect.stringContaining('several ranges of partitions (0-0, 1-1)'),
  });
  expect([await recorded(a1), await recorded(a2)]).toEqual([[2], [2]]);

  await servers.writeFile({ a1: {}, a2: {} });
  const grown = await grow();
  expect([grown.code, grown.stdout]).toEqual([
    0,
    expect.stringMatching(/a1 has recorded 3 partitions\na2 has recorded 3 partitions\nRecorded in ClickHouse\./),
  ]);
  expect([await recorded(a1), await recorded(a2)]).toEqual([[3], [3]]);
});

/** The topic of the clock, as it is when no ingest-api has sent a record for long. */
async function createClock(servers: Awaited<ReturnType<typeof startServers>>): Promise<void> {
  const admin = servers.kafka.admin();
  await admin.connect();
  const topic = servers.topics.events.replace(/events$/, 'clock');
  const configEntries = [{ name: 'message.timestamp.type', value: 'LogAppendTime' }];
  await admin.createTopics({ waitForLeaders: true, topics: [{ topic, numPartitions: 1, configEntries }] });
  await admin.disconnect();
}
