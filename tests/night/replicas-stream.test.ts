import { Receiver, WEBHOOKS_ENV } from '@sluice/query-api/testing/webhooks';
import { eventually } from '@sluice/shared/testing/eventually';
import { until } from '@sluice/shared/testing/until';
import { expect, inject, test } from 'vitest';
import { readClickHouse } from '../kit/clickhouse.ts';
import { startLoad } from '../kit/load.ts';
import { sumMetric } from '../kit/metrics.ts';
import { startPipeline } from '../kit/pipeline.ts';
import { startReplicas } from '../kit/replicas.ts';
import {
  allOf,
  expectAllReceived,
  StreamFollower,
  untilAllAt,
  untilAllGoOn,
  untilAllListen,
} from '../kit/stream-follower.ts';

test('streams of three replicas: one is left, killed or cut off, Keeper and writers are killed, inserts fail: each event comes once, webhooks are delivered, and an alert fires', async () => {
  await using replicas = await startReplicas(['r1', 'r2', 'r3']);
  const { r1, r2, r3 } = replicas.servers;
  const all = { r1: { url: r1.url }, r2: { url: r2.url }, r3: { url: r3.url } };
  await using running = await startPipeline({
    kafkaBrokers: inject('kafkaBrokers'),
    clickhouseUrl: r1.url,
    name: 'replicasstream',
    servers: all,
    env: { CLICKHOUSE_REPLICATION: 'replicated' },
    envOf: { 'query-api': { ...WEBHOOKS_ENV, READ_STALE_MS_MAX: '600000' } },
  });
  const { database, key } = running;
  await using ofEvents = await Receiver.start();
  await using ofAlert = await Receiver.start();
  const create = async (path: string, body: object) => {
    const response = await fetch(`${running.services['query-api'].url}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    expect(response.status).toBe(201);
    return ((await response.json()) as { id: string }).id;
  };
  const second = await running.startAnother('query-api');
  const apis = [running.services['query-api'], second];
  let turn = 0;
  const followed = [
    { filter: '', urlOf: () => apis[0]?.url, streamMs: undefined },
    { filter: '?properties.key[contains]=1&userId[exists]=true', urlOf: () => apis[1]?.url, streamMs: undefined },
    // Connects to each in turn.
    { filter: '', urlOf: () => apis[turn++ % 2]?.url, streamMs: 2_000 },
  ].map(({ filter, urlOf, streamMs }) => ({
    filter,
    follower: new StreamFollower(() => urlOf() ?? '', filter, key, streamMs),
  }));
  const followers = followed.map(({ follower }) => follower);
  await untilAllListen(followers);
  await create('/webhooks', { url: ofEvents.url, batched: true });
  const view = await create('/views', { name: 'Nothing', report: 'series', parameters: { event: 'nothing' } });
  const alert = { name: 'Absent', view, window: '1d', condition: { is: 'absent' }, url: ofAlert.url };
  const alertId = await create('/alerts', alert);
  await using load = startLoad({ pipeline: running, urls: () => [running.services['ingest-api'].url], concurrency: 3 });

  const more = () => untilAllGoOn(load, followers);
  const onServer = (name: string) => untilAllAt(followers, name);

  await more();
  // query-api alone follows the file; writers read it when they start.
  for (const name of ['r1', 'r2'] as const) {
    await running.writeServers({ [name]: all[name] });
    await onServer(name);
    await more();
  }
  await running.writeServers(all);

  // Inserts find no second replica in time, and end with an error although what they stored is there.
  const fetches = (what: 'START' | 'STOP', urls: readonly string[]) =>
    Promise.all(urls.map((url) => readClickHouse(url, `SYSTEM ${what} FETCHES ${database}.events`)));
  const failures = () => sumMetric(Object.values(running.writers), 'sluice_writer_batch_failures_total');
  const before = await failures();
  await fetches('STOP', [r1.url, r2.url, r3.url]);
  await eventually(failures).toBeGreaterThan(before);
  await fetches('START', [r1.url, r2.url, r3.url]);
  await more();

  await replicas.keeper.kill9();
  await replicas.keeper.restart();
  await more();
  // The state of webhooks is at the first one: they wait for it.
  for (const server of [r2, r3, r1]) {
    await server.kill9();
    await more();
    await server.restart();
    await more();
  }
  for (const [name, writer] of Object.entries(running.writers)) {
    await writer.kill9();
    await more();
    running.writers[name] = await running.replace(writer);
    await more();
  }
  await readClickHouse(r2.url, `OPTIMIZE TABLE ${database}.events FINAL`);
  await more();

  await load.stop();
  await running.drained();
  await eventually(() => ofAlert.received.length).toBeGreaterThan(0);
  const { body } = await running.get<Record<string, unknown>>(`/alerts/${alertId}`);
  expect(body).toMatchObject({ status: 'firing', value: 0 });
  // A webhook may get an event again, and none is missing.
  const stored = (await allOf(running, '', key)).map(({ uuid }) => uuid);
  await until('the last events to be delivered', async () => new Set(stored).isSubsetOf(new Set(ofEvents.uuids)));
  for (const { filter, follower } of followed) {
    await expectAllReceived(running, follower, filter);
    // Nothing comes again, so nobody is told.
    expect(follower.moves).toEqual([]);
    expect(new Set(follower.received).size).toBe(follower.received.length);
  }
});
