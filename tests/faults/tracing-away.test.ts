import { until } from '@sluice/shared/testing/until';
import { expect, inject, test } from 'vitest';
import { type IngestAlone, startIngestAlone } from '../kit/ingest-alone.ts';
import { readRows } from '../kit/kafka-rows.ts';
import { startOtlpReceiver } from '../kit/otlp-receiver.ts';

const kafkaBrokers = inject('kafkaBrokers');
const SUBMISSION = JSON.stringify({ foreignUserGroupId: 'g', events: [{ event: 'a' }] });

/** Submits one event, and returns the headers with which Kafka has it. */
async function headersOfOne(ingest: IngestAlone, name: string): Promise<readonly string[] | undefined> {
  const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
  expect(await ingest.submit(SUBMISSION, { headers: { traceparent } })).toBe(202);
  const rows = await readRows(kafkaBrokers, `${name}.events`, (found) => found.length > 0);
  expect(rows).toHaveLength(1);
  return rows[0]?.headers;
}

test('without the SDK, messages have no header of a trace, and nothing is exported', async () => {
  await using receiver = await startOtlpReceiver();
  const env = { ...receiver.env, NODE_OPTIONS: '' };
  await using ingest = await startIngestAlone({ kafkaBrokers, name: 'untraced', env });
  expect(await headersOfOne(ingest, 'untraced')).toEqual(['kind', 'format', 'partitions']);
  expect(await ingest.service.stop()).toBe(0);
  expect(receiver.received).toEqual([]);
});

test('spans that have just ended are exported before the process ends', async () => {
  await using receiver = await startOtlpReceiver();
  const env = { ...receiver.env, OTEL_BSP_SCHEDULE_DELAY: '600000' };
  await using ingest = await startIngestAlone({ kafkaBrokers, name: 'lastspans', env });
  expect(await headersOfOne(ingest, 'lastspans')).toEqual(['kind', 'format', 'partitions', 'traceparent']);
  expect(await ingest.service.stop()).toBe(0);
  expect(receiver.spans.map(({ name }) => name).sort()).toEqual([
    'POST /v1/public/userGroups',
    'send lastspans.events',
  ]);
});

test.each(['silent', 'away'] as const)('a collector that is %s keeps no service from stopping', async (manner) => {
  const name = `collector${manner}`;
  await using receiver = await startOtlpReceiver('silent');
  const address = manner === 'away' ? { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' } : {};
  const patience = { OTEL_EXPORTER_OTLP_TIMEOUT: '600000', OTEL_BSP_EXPORT_TIMEOUT: '600000' };
  const env = { ...receiver.env, ...address, ...patience };
  await using ingest = await startIngestAlone({ kafkaBrokers, name, env });
  await headersOfOne(ingest, name);
  // It would be 1 if the time to stop had run out.
  expect(await ingest.service.stop()).toBe(0);
});

test('a collector that refuses spans is logged, without the secret that it quotes', async () => {
  await using receiver = await startOtlpReceiver('refusing');
  const env = { ...receiver.env, OTEL_EXPORTER_OTLP_HEADERS: 'x-secret=s3cr3t' };
  await using ingest = await startIngestAlone({ kafkaBrokers, name: 'refusedspans', env });
  await headersOfOne(ingest, 'refusedspans');
  const line = '"reason":"Unauthorized","msg":"spans cannot be exported"';
  await until('the failure to be logged', async () => ingest.service.log().includes(line));
  expect(await ingest.service.stop()).toBe(0);
  expect(ingest.service.log()).not.toContain('s3cr3t');
});
