import { sleep } from '@sluice/shared/base/retry';
import type { MeasuredPeer } from './measured-peer.ts';

/** The longest pause after a kill, and how long a peer gets to store again before the next one, in milliseconds. */
const PAUSE_MS = 1_000;
const STORES_AGAIN_MS = 15_000;

/** How long the broker is away, and how long events are sent after that, in milliseconds. */
const OUTAGE_MS = 5_000;

/**
 * Kills each process of a peer, and its ClickHouse, this many times, and each starts again at once. At the end its
 * only broker is killed, and comes back after some seconds.
 */
export async function breakPeer(measured: MeasuredPeer, kills: number): Promise<void> {
  const { engines, processes } = measured.peer;
  const victims = {
    'the way in': () => processes.ingest.killAndRestart(),
    ...(processes.sink && { 'the sink': () => processes.sink?.killAndRestart() }),
    ClickHouse: async () => {
      await engines.clickhouse.kill9();
      await engines.clickhouse.restart();
    },
  };
  for (const [name, kill] of Object.entries(victims)) {
    console.error(`  ${kills} kills of ${name}`);
    for (let done = 0; done < kills; done += 1) {
      await kill();
      await storesAgain(measured);
    }
  }
  console.error('  an outage of the broker');
  await engines.kafka.kill9();
  await sleep(OUTAGE_MS);
  await engines.kafka.restart();
  await sleep(OUTAGE_MS);
}

/** Waits until a peer stores, and a moment more, so that the next kill falls into its work. */
async function storesAgain(measured: MeasuredPeer): Promise<void> {
  const before = await measured.rows();
  for (const endAt = performance.now() + STORES_AGAIN_MS; performance.now() < endAt; ) {
    if ((await measured.rows()) > before) break;
    await sleep(50);
  }
  await sleep(Math.random() * PAUSE_MS);
}
