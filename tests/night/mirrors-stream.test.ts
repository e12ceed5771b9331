import { eventually } from '@sluice/shared/testing/eventually';
import { expect, inject, test } from 'vitest';
import { ownClickHouse } from '../kit/engines.ts';
import { freeze } from '../kit/freeze.ts';
import { startLoad } from '../kit/load.ts';
import { readMetric } from '../kit/metrics.ts';
import { type Pipeline, startPipeline } from '../kit/pipeline.ts';
import type { Service } from '../kit/service.ts';
import {
  expectAllReceived,
  StreamFollower,
  untilAllAt,
  untilAllCanTakeOver,
  untilAllGoOn,
  untilAllListen,
} from '../kit/stream-follower.ts';

interface Followed {
  readonly filter: string;
  readonly follower: StreamFollower;
}

/** Clients of two query-apis, one of which connects to them in turn, every two seconds. */
function followAll({ key }: Pipeline, apis: () => readonly Service[]): readonly Followed[] {
  const follow = (urlOf: () => Service | undefined, filter: string, streamMs?: number) => ({
    filter,
    follower: new StreamFollower(() => urlOf()?.url ?? '', filter, key, streamMs),
  });
  let turn = 0;
  return [
    follow(() => apis()[0], ''),
    follow(() => apis()[0], '?properties.key[contains]=1&userId[exists]=true'),
    follow(() => apis()[1], ''),
    follow(() => apis()[turn++ % 2], '', 2_000),
  ];
}

test('the ClickHouse server of streams is killed, frozen, loses its writer or is removed from the file: nothing is missed', async () => {
  await using one = await ownClickHouse();
  await using other = await ownClickHouse();
  const servers = { a1: { url: one.url }, a2: { url: other.url } };
  await using running = await startPipeline({
    kafkaBrokers: inject('kafkaBrokers'),
    clickhouseUrl: one.url,
    name: 'mirrorsstream',
    servers,
    // On a busy machine a server may take more than a minute to catch up, while the other one is away.
    envOf: { 'query-api': { READ_STALE_MS_MAX: '600000' } },
  });
  let second = await running.startAnother('query-api');
  // On a busy machine streams move to the other server before anything is killed.
  await untilAllCanTakeOver([one.url, other.url], running.database);
  const followed = followAll(running, () => [running.services['query-api'], second]);
  const followers = followed.map(({ follower }) => follower);
  await untilAllListen(followers);
  await using load = startLoad({ pipeline: running, urls: () => [running.services['ingest-api'].url], concurrency: 3 });

  const more = () => untilAllGoOn(load, followers);
  const onServer = (name: string) => untilAllAt(followers, name);

  // Either of them may have had its tables first.
  await running.writeServers({ a1: servers.a1 });
  await onServer('a1');
  await running.writeServers(servers);
  await more();
  await one.kill9();
  await onServer('a2');
  await more();
  // A client resumes at another query-api, and that one is killed while a server is away.
  await second.kill9();
  second = await running.replace(second);
  await more();
  await one.restart();
  await more();

  const { a2: writerOfOther } = running.writers;
  if (other.pid === undefined || !writerOfOther) throw new Error('the engine or its writer does not run');
  const failures = () => readMetric(writerOfOther, 'sluice_writer_batch_failures_total');
  const before = await failures();
  const thaw = freeze(other.pid);
  await onServer('a1');
  await more();
  // Its writer gives up a statement.
  await eventually(failures).toBeGreaterThan(before);
  thaw();
  await more();

  const [writer] = Object.values(running.writers);
  if (!writer) throw new Error('a1 has no writer');
  await writer.kill9();
  await onServer('a2');
  await more();
  running.writers['a1'] = await running.replace(writer);
  await more();

  await running.writeServers({ a1: servers.a1 });
  await onServer('a1');
  await more();
  await running.writeServers(servers);
  await more();

  await load.stop();
  await running.drained();
  for (const { filter, follower } of followed) {
    await expectAllReceived(running, follower, filter);
    expect(follower.moves.length).toBeGreaterThanOrEqual(4);
  }
});
