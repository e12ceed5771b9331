import { inject, test } from 'vitest';
import { readMetric } from '../kit/metrics.ts';
import { surviveOutage } from '../kit/outage.ts';

/** Between so many attempts are pauses of 6.3 to 12.6 s: longer than the writer's session in Kafka and a statement may last. */
const FAILURES = 7;

test('ClickHouse is away for longer than a session and a statement may last: nothing is refused, the writer waits, everything is stored once', async () => {
  await surviveOutage({
    kafkaBrokers: inject('kafkaBrokers'),
    name: 'outage',
    isOver: async (writer) => (await readMetric(writer, 'sluice_writer_batch_failures_total')) >= FAILURES,
  });
});
