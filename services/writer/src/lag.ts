import type { Component } from '@sluice/shared/lifecycle';
import type { Admin, Kafka } from 'kafkajs';
import { Gauge, type Registry } from 'prom-client';
import { offsetOf } from './offset-guard.ts';

/** What was measured is used again for this long, in milliseconds. */
const FRESH_MS = 1_000;

/** A scrape waits for Kafka this long, in milliseconds. */
const PATIENCE_MS = 4_000;

export interface LagOptions {
  readonly kafka: Kafka;
  readonly groupId: string;
  readonly topics: readonly string[];
}

interface PartitionLag {
  readonly topic: string;
  readonly partition: number;
  readonly messages: number;
  readonly seconds: number;
}

/**
 * Metrics of what Kafka holds and is not stored, of all partitions, whoever owns them. Kafka itself is asked at each
 * scrape, so they are right while ClickHouse is away and while no writer has an assignment; while Kafka cannot be asked
 * they are absent.
 */
export function createLagMetrics(registry: Registry, { kafka, groupId, topics }: LagOptions): Component {
  const common = { labelNames: ['topic', 'partition'], registers: [registry] };
  const messages = new Gauge({
    ...common,
    name: 'sluice_writer_lag_messages',
    help: 'Messages of a partition that are not stored yet, as Kafka has it, whichever writer owns it.',
    collect: refresh,
  });
  const seconds = new Gauge({
    ...common,
    name: 'sluice_writer_lag_seconds',
    help: 'Age of the oldest message of a partition that is not stored yet, as Kafka has it; 0 when there is none.',
    collect: refresh,
  });
  let connected: Promise<Admin> | undefined;
  let refreshing: Promise<void> | undefined;
  let refreshedAt = 0;

  async function connect(): Promise<Admin> {
    const admin = kafka.admin();
    await admin.connect();
    return admin;
  }

  async function disconnect(): Promise<void> {
    const admin = await connected?.catch(() => undefined);
    connected = undefined;
    await admin?.disconnect();
  }

  async function measure(): Promise<PartitionLag[]> {
    connected ??= connect();
    const admin = await connected;
    const committed = await admin.fetchOffsets({ groupId, topics: [...topics] });
    const lags: PartitionLag[] = [];
    for (const topic of topics) {
      const logs = await admin.fetchTopicOffsets(topic);
      const ofGroup = committed.find((group) => group.topic === topic)?.partitions ?? [];
      for (const { partition, ...log } of logs) {
        const [low, high] = [BigInt(log.low), BigInt(log.high)];
        const offset = offsetOf(ofGroup, partition);
        const next = BigInt(Math.max(Number(offset), Number(low)));
        const behind = next < high ? high - next : 0n;
        const oldest = behind > 0n ? await admin.fetchRecord({ topic, partition, offset: String(next) }) : null;
        const age = oldest ? Math.max(0, Date.now() - Number(oldest.timestamp)) / 1_000 : 0;
        lags.push({ topic, partition, messages: Number(behind), seconds: age });
      }
    }
    return lags;
  }

  async function update(): Promise<void> {
    const timeout = Promise.withResolvers<never>();
    const timer = setTimeout(() => timeout.reject(new Error('no answer in time')), PATIENCE_MS);
    try {
      const lags = await Promise.race([measure(), timeout.promise]);
      for (const { topic, partition, ...lag } of lags) {
        messages.set({ topic, partition }, lag.messages);
        seconds.set({ topic, partition }, lag.seconds);
      }
    } catch {
      messages.reset();
      seconds.reset();
      disconnect().catch(() => undefined);
    } finally {
      clearTimeout(timer);
    }
  }

  async function refresh(): Promise<void> {
    if (!refreshing || Date.now() - refreshedAt > FRESH_MS) {
      refreshing = update().finally(() => {
        refreshedAt = Date.now();
      });
      refreshedAt = Number.POSITIVE_INFINITY;
    }
    await refreshing;
  }

  return { name: 'lag', start: async () => undefined, stop: disconnect };
}
