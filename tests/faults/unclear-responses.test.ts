import { until } from '@sluice/shared/testing/until';
import { expect, inject, test } from 'vitest';
import { startLoad } from '../support/load.ts';
import { readMetric } from '../support/metrics.ts';
import { startPipeline } from '../support/pipeline.ts';
import { startProxy } from '../support/proxy.ts';
import { expectExactlyOnce } from '../support/verify-delivery.ts';

const [kafkaBrokers, clickhouseUrl] = [inject('kafkaBrokers'), inject('clickhouseUrl')];

test.each([
  ['is cut off after the statement was carried out', 'cut', 17, 3, {}],
  ['does not come before the timeout', 'stall', 23, 1, { STATEMENT_TIMEOUT_MS: '1000' }],
] as const)(
  'a statement whose response %s: its batch fails and is stored again, nothing is lost or doubled',
  async (_, fate, every, failures, env) => {
    let responses = 0;
    let active = false;
    await using proxy = await startProxy(clickhouseUrl, () => (active && ++responses % every === 0 ? fate : 'deliver'));
    await using running = await startPipeline({ kafkaBrokers, clickhouseUrl: proxy.url, name: fate, env });
    const { writer, 'ingest-api': ingest } = running.services;
    await using load = startLoad({ pipeline: running, urls: () => [ingest.url], concurrency: 8 });
    active = true;
    await until('batches to fail', async () => {
      return (await readMetric(writer, 'sluice_writer_batch_failures_total')) >= failures;
    });
    active = false;
    await expectExactlyOnce(running, clickhouseUrl, await load.stop());
    expect(proxy.lost).toBeGreaterThan(0);
  },
);
