import { utimes } from 'node:fs/promises';
import { eventually } from '@sluice/shared/testing/eventually';
import { afterEach, expect, inject, test } from 'vitest';
import { type Mirror, type Mirrors, startMirrors, valuesByServer } from '../../testing/mirrors.ts';

let service: (Mirrors & { readonly a1: Mirror; readonly a2: Mirror }) | undefined;

afterEach(async () => {
  await service?.stop();
  service = undefined;
});

async function startTwo() {
  service = await startMirrors(inject('clickhouseUrl'), ['a1', 'a2']);
  return service;
}

const READABLE = 'sluice_query_server_readable';
const BEHIND = 'sluice_query_server_behind_seconds';
const CHOSEN = 'sluice_query_server_chosen';
const GIVEN_UP = 'sluice_query_given_up_servers_total';

test('metrics say which servers can be read, also while no requests come', async () => {
  const mirrors = await startTwo();
  expect(await valuesByServer(mirrors, READABLE)).toEqual({ a1: 1, a2: 1 });
  mirrors.a2.behaviour = 'refuses';
  await eventually(() => valuesByServer(mirrors, READABLE)).toEqual({ a1: 1, a2: 0 });
  mirrors.a2.behaviour = 'answers';
  await eventually(() => valuesByServer(mirrors, READABLE)).toEqual({ a1: 1, a2: 1 });
  await mirrors.a1.identify({ state: 'filling' });
  await eventually(() => valuesByServer(mirrors, READABLE)).toEqual({ a1: 0, a2: 1 });
});

test('how far a server is behind is that of its record, and absent while nobody knows it', async () => {
  const mirrors = await startTwo();
  await mirrors.a2.progress(120_000);
  await eventually(async () => (await valuesByServer(mirrors, BEHIND))['a2']).toBeGreaterThanOrEqual(120);
  expect((await valuesByServer(mirrors, BEHIND))['a2']).toBeLessThan(3_600);
  await mirrors.a1.clickHouse.command({ query: 'TRUNCATE TABLE storing_progress' });
  mirrors.a2.behaviour = 'refuses';
  await eventually(() => valuesByServer(mirrors, BEHIND)).toEqual({});
});

test('the server that requests read is the chosen one; one that is given up is counted', async () => {
  const mirrors = await startTwo();
  expect(await valuesByServer(mirrors, GIVEN_UP)).toEqual({ a1: 0, a2: 0 });
  await mirrors.get('/events');
  expect(await valuesByServer(mirrors, CHOSEN)).toEqual({ a1: 1, a2: 0 });
  mirrors.a1.behaviour = 'refuses';
  await eventually(async () => {
    await mirrors.get('/events');
    return await valuesByServer(mirrors, CHOSEN);
  }).toEqual({ a1: 0, a2: 1 });
  await eventually(async () => {
    await mirrors.get('/events');
    return await valuesByServer(mirrors, GIVEN_UP);
  }).toEqual({ a1: 1, a2: 0 });
});

test('metrics of the file say how old it is, and whether it can be used', async () => {
  const mirrors = await startTwo();
  const file = async (metric: string) => Object.values(await valuesByServer(mirrors, `sluice_servers_file_${metric}`));
  expect(await file('valid')).toEqual([1]);
  const anHourAgo = new Date(Date.now() - 3_600_000);
  await utimes(mirrors.config.CLICKHOUSE_SERVERS_FILE ?? '', anHourAgo, anHourAgo);
  await eventually(async () => (await file('age_seconds'))[0]).toBeGreaterThanOrEqual(3_600);
  await mirrors.writeFile([]);
  await eventually(() => file('valid')).toEqual([0]);
  // Those of the last valid file are still there.
  expect(await valuesByServer(mirrors, READABLE)).toEqual({ a1: 1, a2: 1 });
});
