import { recordState } from '@sluice/storage/clickhouse/identity';
import { expect, inject, test } from 'vitest';
import { NOWHERE, recordProgress, startServers, stateOf } from '../testing/test-servers.ts';

const engines = { clickhouseUrl: inject('clickhouseUrl'), kafkaBrokers: inject('kafkaBrokers') };

test('status names everything that is wrong', async () => {
  await using servers = await startServers(engines, ['a1', 'a2', 'a3']);
  const { a1, a2, a3 } = servers.of;
  await recordProgress(a1, 600);
  await recordState(a2.client, 'incomplete', 'Offsets 3 to 4 are gone.');
  await recordState(a3.client, 'filling');
  await a1.insert('retention', { workspace_id: 'acme', days: 30 }, { workspace_id: '', days: 400 });
  await a2.insert('retention', { workspace_id: 'acme', days: 90 });
  await a1.insert('topic_partitions', { topic: 't', partitions: 2 });
  await a2.insert('topic_partitions', { topic: 't', partitions: 3 });
  await servers.sluice(['writer', 'halt', '--all', '--server', 'a1']);
  await servers.writeFile({
    a1: {},
    a2: {},
    a3: {},
    again: { database: a1.database, url: engines.clickhouseUrl.replace('127.0.0.1', 'localhost'), group: 'other' },
    gone: { url: NOWHERE },
    new: { database: `${a1.database}_new`, serves: false },
  });
  const { code, stdout } = await servers.sluice(['servers', 'status']);
  expect(code).toBe(1);
  expect(stdout).toMatch(/^new +empty +all +no +- /m);
  const problems = stdout.split('\n').slice(7, -1);
  expect(problems).toEqual([
    'a1 has no writers: start them.',
    'a1: 4 partitions are halted: npm run writer -- status --server a1.',
    'a1 is behind: what Kafka has had for 10 min is not stored.',
    'a2 is incomplete, and is read only where no other server can be: Offsets 3 to 4 are gone.',
    'a2 has no writers: start them.',
    'a2: its writers have not recorded how far they are.',
    'a3 is being filled, and is not read until then: sluice servers copy.',
    'again: the database at this address is that of the server a1.',
    `again: the database belongs to the group ${a1.group}, and the file says other.`,
    expect.stringMatching(/^again has no writers/),
    expect.stringMatching(/^again: 4 partitions are halted/),
    expect.stringMatching(/^again is behind/),
    expect.stringMatching(/^gone does not answer: .*ECONNREFUSED/),
    expect.stringMatching(/^new lacks \d+ migrations/),
    'a1 and again are one database: check the addresses.',
    'The number of partitions of t differs: a1 2, a2 3, again 2.',
    'The days for which events of all other workspaces are kept differ: a1 400, a2 for ever, a3 for ever, again 400. Set them again: npm run retention.',
    'The days for which events of acme are kept differ: a1 30, a2 90, a3 none of its own, again 30. Set them again: npm run retention.',
  ]);
});

test('check names everything that the databases contradict, and changes nothing', async () => {
  await using servers = await startServers(engines, ['a1', 'a2', 'a3']);
  const { a1, a2, a3 } = servers.of;
  await a1.insert('topic_partitions', { topic: 't', partitions: 48 });
  await recordState(a3.client, 'incomplete', 'Offsets 3 to 4 are gone.');
  const path = await servers.writeFile({
    // The addresses of the first two are exchanged.
    a1: { database: a2.database, partitions: '0-30' },
    a2: { database: a1.database, partitions: '0-30' },
    a3: { serves: false, group: 'other' },
    new: { database: `${a1.database}_new`, partitions: '31-40' },
  });
  const { code, stdout } = await servers.sluice(['servers', 'check', path]);
  expect([code, stdout.split('\n').slice(0, -1)]).toEqual([
    1,
    [
      'a1: the database at this address is that of the server a2.',
      `a1: the database belongs to the group ${a2.group}, and the file says ${a1.group}.`,
      'a1: the database stores the partitions all, and the file says 0-30.',
      'a2: the database at this address is that of the server a1.',
      `a2: the database belongs to the group ${a1.group}, and the file says ${a2.group}.`,
      'a2: the database stores the partitions all, and the file says 0-30.',
      `a3: the database belongs to the group ${a3.group}, and the file says other.`,
      'servers: all that are read need the same database where they have ranges',
      'servers: the ranges end with partition 40, and the last of the topics is 47',
      'Warning: a3 is incomplete: Offsets 3 to 4 are gone.',
      expect.stringMatching(/^Warning: new lacks \d+ migrations/),
      'The file is wrong.',
    ],
  ]);
  expect(await a1.read(`SELECT name FROM system.databases WHERE name = '${a1.database}_new'`)).toEqual([]);
});

test('accept says what is missing, and lets an incomplete server be read as the others are', async () => {
  await using servers = await startServers(engines, ['a1', 'a2']);
  const { a1, a2 } = servers.of;
  await recordState(a1.client, 'incomplete', 'Offsets 3 to 4 are gone.');
  await recordState(a2.client, 'filling');
  const declined = await servers.sluice(['servers', 'accept', 'a1']);
  expect([declined.code, declined.stdout]).toEqual([
    1,
    expect.stringMatching(/^a1 is incomplete: Offsets 3 to 4 are gone\.\n.*\nnothing was changed\n$/s),
  ]);
  expect(await stateOf(a1)).toMatchObject({ state: 'incomplete' });
  expect(await servers.sluice(['servers', 'accept', 'a1', '--yes'])).toMatchObject({ code: 0 });
  expect(await stateOf(a1)).toMatchObject({ state: 'complete' });
  expect(await servers.sluice(['servers', 'accept', 'a1', '--yes'])).toMatchObject({ code: 1 });
  expect(await servers.sluice(['servers', 'accept', 'a2', '--yes'])).toMatchObject({ code: 1 });
  expect(await stateOf(a2)).toMatchObject({ state: 'filling' });
});

test('wrong arguments, and a missing file, are named before anything is connected to', async () => {
  await using servers = await startServers(engines, ['a1']);
  for (const [args, message] of [
    [[], 'Use status, check FILE'],
    [['remove'], 'Use status, check FILE'],
    [['status', 'a1'], 'status takes no arguments.'],
    [['status', '--yes'], "'--yes'"],
    [['check'], 'check needs a FILE.'],
    [['accept'], 'accept needs the NAME of a server'],
    [['accept', 'a3'], 'NAME: there is no server a3 in CLICKHOUSE_SERVERS_FILE, which has a1.'],
  ] as const) {
    const { code, stdout, stderr } = await servers.sluice(['servers', ...args]);
    expect([args, code, stdout, stderr]).toEqual([args, 2, '', expect.stringContaining(message)]);
  }
  const without = await servers.sluice(['servers', 'status'], {
    CLICKHOUSE_SERVERS_FILE: '',
    CLICKHOUSE_URL: engines.clickhouseUrl,
  });
  expect([without.code, without.stderr]).toEqual([2, expect.stringContaining('CLICKHOUSE_SERVERS_FILE: is required')]);
});
