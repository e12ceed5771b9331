import { setTimeout as delay } from 'node:timers/promises';
import { ownClickHouse } from '../engines.ts';
import { startProxy } from '../proxy.ts';
import { seededRandom } from '../random.ts';
import type { Fate } from '../tcp-proxy.ts';
import { verifyDelivery } from '../verify-delivery.ts';
import { freezeFor } from './freeze-for.ts';
import type { ChaosStore } from './store.ts';

/** Settings of ClickHouse that change the meaning of statements that do not set them. */
const OTHER_PROFILE = {
  join_use_nulls: '1',
  transform_null_in: '1',
  group_by_use_nulls: '1',
  aggregate_functions_null_for_empty: '1',
  async_insert: '1',
  wait_for_async_insert: '0',
  max_rows_in_set: '1',
  set_overflow_mode: 'break',
  session_timezone: 'Asia/Tokyo',
};

/** While responses of ClickHouse are disturbed, one in so many is lost. */
const RESPONSES_PER_LOSS = 15;

/** Starts a ClickHouse behind a proxy that can lose its responses. */
export async function startOneServer(seed: number): Promise<ChaosStore> {
  await using cleanup = new AsyncDisposableStack();
  const clickhouse = cleanup.use(await ownClickHouse());
  let fate: Fate = 'deliver';
  let profile: Readonly<Record<string, string>> = {};
  const fateRandom = seededRandom(seed + 1);
  const proxy = cleanup.use(
    await startProxy(
      clickhouse.url,
      () => (fateRandom() * RESPONSES_PER_LOSS < 1 ? fate : 'deliver'),
      () => profile,
    ),
  );
  const kept = cleanup.move();
  return {
    clickhouseUrl: proxy.url,
    async disturb({ kind, lastsMs }, { signal }) {
      const last = () => delay(lastsMs, undefined, { signal });
      if (kind === 'freeze') return await freezeFor(clickhouse.pid, lastsMs, signal);
      if (kind === 'kill') {
        await clickhouse.kill9();
        await last();
        return await clickhouse.restart();
      }
      if (kind === 'change profile') {
        profile = OTHER_PROFILE;
        await last();
        profile = {};
        return;
      }
      fate = kind === 'cut responses' ? 'cut' : 'stall';
      await last();
      fate = 'deliver';
    },
    async verify({ pipeline }, tally, cutOff) {
      return { delivery: await verifyDelivery(pipeline, clickhouse.url, tally, cutOff) };
    },
    audited: (pipeline) => [{ name: 'the server', audited: pipeline, clickhouseUrl: clickhouse.url }],
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}
