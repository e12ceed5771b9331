import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { expect, inject, test } from 'vitest';
import { NOWHERE, recordProgress, startMember, startServers } from '../testing/test-servers.ts';

const engines = { clickhouseUrl: inject('clickhouseUrl'), kafkaBrokers: inject('kafkaBrokers') };

test('status shows all servers; nothing is wrong while their writers keep up and their settings are equal', async () => {
  await using servers = await startServers(engines, ['a1', 'a2']);
  const { a1, a2 } = servers.of;
  for (const server of [a1, a2]) await recordProgress(server);
  await using _one = await startMember(servers, a1);
  await using _other = await startMember(servers, a2);
  const { code, stdout } = await servers.sluice(['servers', 'status']);
  expect([code, stdout]).toEqual([
    0,
    expect.stringMatching(
      /^server .*\na1 +complete +all +yes +[\d.]+ +1 +0 +0 s +\d+ s ago\na2 +complete .*\nNothing is wrong\.\n$/,
    ),
  ]);
});

test('check finds nothing wrong with the file in force, and says what it could not check', async () => {
  await using servers = await startServers(engines, ['a1']);
  const path = await servers.writeFile({ a1: {}, gone: { url: NOWHERE } });
  const { code, stdout } = await servers.sluice(['servers', 'check', path]);
  expect([code, stdout]).toEqual([
    0,
    expect.stringMatching(
      /^Warning: gone does not answer, and could not be checked: .*\nNothing is wrong with the file\. It has a1, gone\.\n$/,
    ),
  ]);
});

test('check compares the ranges with KAFKA_PARTITIONS while no database says over how many partitions rows are spread', async () => {
  await using servers = await startServers(engines, ['a1']);
  const path = await servers.writeFile({ a1: { url: NOWHERE, partitions: '0-8' } });
  const check = (KAFKA_PARTITIONS: string) => servers.sluice(['servers', 'check', path], { KAFKA_PARTITIONS });
  expect(await check('8')).toMatchObject({
    code: 1,
    stdout: expect.stringContaining('servers: the ranges end with partition 8, and the last of the topics is 7\n'),
  });
  expect(await check('9')).toMatchObject({ code: 0 });
});

test('check names every error of a file, and one that is missing', async () => {
  await using folder = await makeTempDir();
  await using servers = await startServers(engines, []);
  const path = join(folder.path, 'new.json');
  await writeFile(path, JSON.stringify({ servers: [{ name: 'A', url: 'x' }, { name: 'a2' }] }));
  const { code, stdout } = await servers.sluice(['servers', 'check', path]);
  expect([code, stdout.split('\n').length]).toEqual([1, 4]);
  const missing = await servers.sluice(['servers', 'check', join(folder.path, 'missing.json')]);
  expect(missing).toMatchObject({ code: 1, stdout: 'does not exist\n' });
});
