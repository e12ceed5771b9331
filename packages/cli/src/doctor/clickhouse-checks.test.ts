import { parseServersFile } from '@sluice/shared/servers/servers-file';
import { expect, test } from 'vitest';
import { proposedServers, replicationFinding, settingsOfReplicas } from './clickhouse-checks.ts';

test('a file of servers is proposed that services take, without the login of the common address', () => {
  const proposed = proposedServers(['node-1', 'fd00::2'], 'https://writer:secret@balancer:8443/');
  const servers = parseServersFile(proposed ?? '', { database: 'sluice', group: 'sluice-writer' });
  expect(servers.map(({ name, url, group }) => ({ name, url, group }))).toEqual([
    { name: 'a1', url: 'https://node-1:8443', group: 'sluice-writer.a1' },
    { name: 'a2', url: 'https://[fd00::2]:8443', group: 'sluice-writer.a2' },
  ]);
});

test('the addresses have no port where the common one has none', () => {
  expect(proposedServers(['a', 'b'], 'http://balancer')).toContain('"http://b"');
});

test('nothing is proposed for one host', () => {
  expect(proposedServers(['a'], 'http://balancer:8123')).toBeUndefined();
});

test('a replica is right with a session of Keeper, tables that take rows, and what others have', () => {
  const state = { shard: '1', replica: 'r1', seconds: 7, closed: 0, delay: 20, queue: 3 };
  expect(replicationFinding(state)).toMatchObject({
    state: 'ok',
    found: 'replica r1 of shard 1, with a session of Keeper',
  });
  expect(replicationFinding({ ...state, seconds: 0 })).toMatchObject({
    ...{ state: 'wrong', found: 'replica r1 of shard 1, with no session of Keeper' },
    todo: expect.stringContaining('has not used Keeper yet'),
  });
  expect(replicationFinding({ ...state, closed: 2 })).toMatchObject({ state: 'wrong' });
  expect(replicationFinding({ ...state, delay: 301 })).toMatchObject({ state: 'wrong' });
});

test('an account that stores at replicas is tried with what each insert sends', () => {
  expect(Object.keys(settingsOfReplicas(['writer', 'migrate'])).sort()).toEqual([
    ...['insert_quorum', 'insert_quorum_parallel', 'insert_quorum_timeout', 'receive_timeout'],
  ]);
  expect(settingsOfReplicas(['webhooks'])).toMatchObject({ insert_quorum: '2' });
  expect(settingsOfReplicas(['query'])).toEqual({});
});
