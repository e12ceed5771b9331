import { createTestClients } from '@sluice/storage/testing/clients';
import { expect, inject, test } from 'vitest';
import { CopyLog } from './copy-log.ts';
import { TableCopy } from './table-copy.ts';

const SOURCE = { name: 'a1', id: '0190a0a0-0000-7000-8000-00000000000a' };

async function startLogs() {
  const a2 = await createTestClients(inject('clickhouseUrl'));
  const log = () => new CopyLog(a2.client, a2.database, SOURCE);
  return { a2, log, [Symbol.asyncDispose]: () => a2.close() };
}

test('a run that was suspended while another one began changes nothing when it wakes up', async () => {
  await using logs = await startLogs();
  const { a2 } = logs;
  const suspended = logs.log();
  await suspended.begin();
  await suspended.record('positions');
  // As after twenty seconds of silence.
  await suspended.record('ended');
  const next = logs.log();
  await next.begin();
  const values = [{ workspace_id: 'a', timestamp: '2026-03-01 00:00:00', user_id: 'copied' }];
  await a2.client.insert({ table: 'events', values, format: 'JSONEachRow' });
  const readSteps = () => a2.read("SELECT step FROM copies WHERE step != 'alive' ORDER BY recorded_at");
  const steps = await readSteps();

  const tables = new TableCopy({
    ...{ client: a2.client, writer: a2.client, log: suspended, remote: (table) => table, share: undefined },
    ...{ bandwidth: 0, signal: new AbortController().signal, onProgress: () => {} },
  });
  const reason = /another run of the command copies to this server/;
  await expect(tables.dropAll('events')).rejects.toThrow(reason);
  await expect(tables.copyEvents('202603')).rejects.toThrow(reason);
  await expect(tables.copyTable('entities')).rejects.toThrow(reason);
  await expect(suspended.record('events', { partition: '202603', rows: 7 })).rejects.toThrow(reason);
  await suspended.end();
  expect(await a2.read('SELECT user_id FROM events')).toEqual([{ user_id: 'copied' }]);
  expect(await readSteps()).toEqual(steps);
  await next.requireNewest();
  await next.end();
});

test('what is done of a copy is known until it is not to be used any more', async () => {
  await using logs = await startLogs();
  const log = logs.log();
  await log.begin();
  expect(await log.copiedSoFar()).toBeUndefined();
  const positions = [
    { topic: 't', partition: 1, nextOffset: 2n ** 60n, last: { fingerprint: 'f', leaderEpoch: 3 } },
    { topic: 't', partition: 0, nextOffset: 4n, last: undefined },
  ];
  await log.record('positions', { positions });
  await log.record('events', { partition: '202603', rows: 7 });
  expect(await log.copiedSoFar()).toEqual({ positions, events: new Map([['202603', 7]]) });
  const ofAnother = new CopyLog(logs.a2.client, logs.a2.database, { ...SOURCE, id: 'other' });
  expect(await ofAnother.copiedSoFar()).toBeUndefined();
  await log.record('positions', { positions });
  expect((await log.copiedSoFar())?.events).toEqual(new Map());
  await log.record('abandoned');
  expect(await log.copiedSoFar()).toBeUndefined();
  await log.end();
});
