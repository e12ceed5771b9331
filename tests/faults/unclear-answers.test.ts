import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, expect, inject, test, vi } from 'vitest';
import { startLoad } from '../support/load.ts';
import { expectExactlyOnce } from '../support/oracle.ts';
import { type Pipeline, startPipeline } from '../support/pipeline.ts';
import { type AnswerProxy, startProxy } from '../support/proxy.ts';
import type { Fate } from '../support/tcp-proxy.ts';

vi.setConfig({ testTimeout: 120_000 });

const clickhouseUrl = inject('clickhouseUrl');
let proxy: AnswerProxy | undefined;
let pipeline: Pipeline | undefined;

afterEach(async () => {
  await pipeline?.stop();
  await proxy?.stop();
});

/** Every `every`th answer of ClickHouse to the writer meets this fate once the pipeline is up. */
async function underFate(name: string, fate: Fate, every: number, env: Record<string, string>): Promise<void> {
  let answers = 0;
  let active = false;
  proxy = await startProxy(clickhouseUrl, () => (active && ++answers % every === 0 ? fate : 'deliver'));
  const kafkaBrokers = inject('kafkaBrokers');
  pipeline = await startPipeline({ kafkaBrokers, clickhouseUrl: proxy.url, name, env });
  const running = pipeline;
  active = true;
  await using load = startLoad({ pipeline: running, urls: () => [running.services['ingest-api'].url], concurrency: 8 });
  await delay(6_000);
  const tally = await load.stop();
  active = false;
  await expectExactlyOnce(running, clickhouseUrl, tally);
  expect(proxy.lost).toBeGreaterThan(0);
  const metrics = await (await fetch(`${running.services.writer.url}/metrics`)).text();
  expect(Number(/sluice_writer_batch_failures_total (\d+)/.exec(metrics)?.[1])).toBeGreaterThan(0);
}

test('answers that are cut off after the statement was carried out: nothing is lost or doubled', async () => {
  await underFate('cut', 'cut', 17, {});
});

test('statements whose answer does not come before the timeout: nothing is lost or doubled', async () => {
  await underFate('stall', 'stall', 23, { STATEMENT_TIMEOUT_MS: '1000' });
});
