import { expect, inject, test } from 'vitest';
import { startServers, stateOf, type TestServer } from '../testing/test-servers.ts';

const engines = { clickhouseUrl: inject('clickhouseUrl'), kafkaBrokers: inject('kafkaBrokers') };

const halted = async (server: TestServer) =>
  (await server.read<{ topic: string }>('SELECT topic FROM writer_halts FINAL WHERE resumed_at IS NULL')).length;

test('halt and resume are of one server, which has to be named', async () => {
  await using servers = await startServers(engines, ['a1', 'a2']);
  const { a1, a2 } = servers.of;
  expect(await servers.sluice(['writer', 'halt', '--all'])).toEqual({
    code: 2,
    stdout: '',
    stderr: '--server is needed: one of a1, a2.\nsluice writer --help shows its usage.\n',
  });
  expect(await servers.sluice(['writer', 'halt', '--all', '--server', 'a3'])).toMatchObject({ code: 2 });
  expect(await servers.sluice(['writer', 'halt', '--all', '--server', 'a2'])).toMatchObject({ code: 0 });
  expect([await halted(a1), await halted(a2)]).toEqual([0, 4]);
  const resume = ['writer', 'resume', '--all', '--from', 'stored', '--yes'];
  expect(await servers.sluice(resume, { CLICKHOUSE_SERVER: 'a2' })).toMatchObject({ code: 0 });
  expect(await halted(a2)).toBe(0);
  // Nothing was given up.
  expect(await stateOf(a2)).toMatchObject({ state: 'complete' });
});

test('a server that gives messages up is incomplete, and says which are missing', async () => {
  await using servers = await startServers(engines, ['a1', 'a2']);
  const { a1, a2 } = servers.of;
  const partition = `${servers.topics.events}/1`;
  const producer = servers.kafka.producer();
  await producer.connect();
  const messages = Array.from({ length: 5 }, () => ({ value: 'x', partition: 1 }));
  await producer.send({ topic: servers.topics.events, messages });
  await producer.disconnect();
  expect(await servers.sluice(['writer', 'halt', partition, '--server', 'a1'])).toMatchObject({ code: 0 });
  const outcome = await servers.sluice(['writer', 'resume', partition, '--from', '3', '--yes', '--server', 'a1']);
  expect([outcome.code, outcome.stdout]).toEqual([0, expect.stringMatching(/is resumed\na1 is incomplete now: /)]);
  expect(await stateOf(a1)).toEqual({
    state: 'incomplete',
    detail: `Offsets 0 to 2 of ${partition} are in the log and are left out: 3 messages.`,
  });
  expect(await stateOf(a2)).toMatchObject({ state: 'complete' });
});
