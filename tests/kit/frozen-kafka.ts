import { setTimeout as delay } from 'node:timers/promises';
import type { LocalKafka } from '@sluice/local-stack/kafka';
import { eventually } from '@sluice/shared/testing/eventually';
import { expect } from 'vitest';
import { freeze } from './freeze.ts';
import { startLoad } from './load.ts';
import { countResponses } from './metrics.ts';
import { startPipeline } from './pipeline.ts';
import { expectExactlyOnce } from './verify-delivery.ts';

export interface FrozenKafkaOptions {
  /** A Kafka of one broker. */
  readonly kafka: LocalKafka;
  readonly clickhouseUrl: string;
  /** The name of the pipeline. */
  readonly name: string;
  /** How long Kafka is frozen after ingest-api has refused something, and before services stop. */
  readonly frozenMs: number;
}

/**
 * Freezes Kafka under load, and stops services meanwhile: they end in time, and by themselves. Once it responds, events are
 * accepted again, and everything is stored once.
 */
export async function stopWhileFrozen({ kafka, clickhouseUrl, name, frozenMs }: FrozenKafkaOptions): Promise<void> {
  const env = { PRODUCE_TIMEOUT_MS: '3000' };
  await using running = await startPipeline({ kafkaBrokers: kafka.brokers, clickhouseUrl, name, env });
  const { writer, 'ingest-api': ingest, 'query-api': query } = running.services;
  await using load = startLoad({ pipeline: running, urls: () => [ingest.url], concurrency: 4 });
  await eventually(load.acceptedSoFar).toBeGreaterThan(100);
  const thaw = freeze(kafka.pids[0] ?? 0);
  try {
    await eventually(() => countResponses(ingest, 503)).toBeGreaterThan(0);
    await delay(frozenMs);
    expect(await Promise.all([writer.stop(), query.stop()])).toEqual([0, 0]);
    expect(writer.log()).toContain('stops without leaving its group');
  } finally {
    thaw();
  }
  const before = load.acceptedSoFar();
  await eventually(load.acceptedSoFar).toBeGreaterThan(before + 200);
  await Promise.all([running.restart('writer'), running.restart('query-api')]);
  await expectExactlyOnce(running, clickhouseUrl, await load.stop());
  const last = freeze(kafka.pids[0] ?? 0);
  expect(await ingest.stop().finally(last)).toBe(0);
}
