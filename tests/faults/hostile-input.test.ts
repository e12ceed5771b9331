import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { findFreePorts } from '@sluice/local-stack/ports';
import { hashKey, writeKeysFile } from '@sluice/shared/keys/keys-file';
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest';
import { type HostileBody, hostileBodies } from '../support/hostile-bodies.ts';
import { readMetric } from '../support/metrics.ts';
import { type Service, startService } from '../support/service.ts';

vi.setConfig({ testTimeout: 300_000 });

const MEBIBYTE = 1_024 * 1_024;

let folder: string;
let ingest: Service;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-hostile-'));
  const keysFile = join(folder, 'keys.json');
  await writeKeysFile(
    keysFile,
    ['hostile', 'other'].map((id) => ({ id, hash: hashKey(id), workspace: id, scopes: ['ingest'] })),
  );
  const [port = 0] = await findFreePorts(1);
  ingest = startService('ingest-api', port, {
    NODE_OPTIONS: '--max-old-space-size=256',
    KAFKA_BROKERS: inject('kafkaBrokers').join(','),
    KAFKA_TOPIC_PREFIX: 'hostile.',
    API_KEYS_FILE: keysFile,
  });
  await ingest.ready();
});
afterAll(async () => {
  await ingest?.kill9();
  await rm(folder, { recursive: true, force: true });
});

async function submit({ body, headers }: Pick<HostileBody, 'body' | 'headers'>, key = 'hostile'): Promise<number> {
  const response = await fetch(`${ingest.url}/v1/public/userGroups`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
    body: new Uint8Array(body),
  });
  await response.arrayBuffer();
  return response.status;
}

/** The most memory that the process has ever had, in MiB. */
async function peakMebibytes(): Promise<number> {
  const status = await readFile(`/proc/${ingest.pid}/status`, 'utf8');
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) / 1_024;
}

async function memory() {
  const m = async (n: string) => Math.round((await readMetric(ingest, n)) / MEBIBYTE);
  return [
    await m('process_resident_memory_bytes'),
    await m('nodejs_heap_size_total_bytes'),
    await m('nodejs_heap_size_used_bytes'),
    await m('nodejs_external_memory_bytes'),
  ].join(' ');
}

/** How long the event loop was blocked at most since the last call. */
async function longestBlockMs(): Promise<number> {
  return (await readMetric(ingest, 'nodejs_eventloop_lag_max_seconds')) * 1_000;
}

describe('with a heap of 256 MiB', () => {
  test.each(hostileBodies().map((hostile) => [hostile.name, hostile] as const))('%s', async (name, hostile) => {
    await longestBlockMs();
    if (name === 'events as large as a body may be') console.log('begin', await peakMebibytes(), await memory());
    const startedAt = performance.now();
    const status = await submit(hostile);
    const ms = performance.now() - startedAt;
    console.log(
      name,
      status,
      `${ms.toFixed(0)} ms`,
      `block ${(await longestBlockMs()).toFixed(0)} ms`,
      `peak ${(await peakMebibytes()).toFixed(0)} MiB`,
      'now',
      await memory(),
    );
    expect(status).toBe(hostile.status);
  });

  test('all together', async () => {
    const bodies = hostileBodies();
    await longestBlockMs();
    const before = await latencies(200);
    let over = false;
    const counts = new Map<number, number>();
    const hostile = Promise.all(
      bodies
        .flatMap((body) => [body, body])
        .map(async (body) => {
          const deadline = performance.now() + 15_000;
          while (performance.now() < deadline) {
            const status = await submit(body).catch(() => 0);
            counts.set(status, (counts.get(status) ?? 0) + 1);
            if (status === 503) await delay(100);
          }
        }),
    ).finally(() => {
      over = true;
    });
    const during: number[] = [];
    while (!over) during.push(...(await latencies(10)));
    await hostile;
    console.log(
      counts,
      'before',
      quantile(before, 0.5),
      quantile(before, 0.99),
      'during',
      quantile(during, 0.5),
      quantile(during, 0.99),
      'max',
      Math.max(...during),
      during.length,
      'block',
      await longestBlockMs(),
      'peak',
      await peakMebibytes(),
      MEBIBYTE,
    );
  });
});

async function latencies(count: number): Promise<number[]> {
  const found: number[] = [];
  for (let index = 0; index < count; index += 1) {
    const startedAt = performance.now();
    const status = await submit({ body: Buffer.from('{"foreignUserGroupId":"a","events":[{"event":"e"}]}') }, 'other');
    expect(status).toBe(202);
    found.push(performance.now() - startedAt);
  }
  return found;
}

function quantile(values: readonly number[], share: number): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * share)] ?? Number.NaN;
}
