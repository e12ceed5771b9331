import { inject, test } from 'vitest';
import { readMetric } from '../kit/metrics.ts';
import { surviveOutage } from '../kit/outage.ts';

/** Between so many attempts are pauses of 6.3 to 12.6 s: longer than the writer's session in Kafka and a statement may last. */
const FAILURES = 7;

/**
 * So long is longer than both in any case. A writer that has lost its place in the group meanwhile, as one on a busy machine may, asks for
 * its positions, and counts no batch that fails.
 */
const LONGEST_MS = 60_000;

test('ClickHouse is away for longer than a session and a statement may last: nothing is refused, the writer waits, everything is stored once', async () => {
  let firstAskedAt: number | undefined;
  await surviveOutage({
    kafkaBrokers: inject('kafkaBrokers'),
    name: 'outage',
    isOver: async (writer) => {
      firstAskedAt ??= performance.now();
      const failures = await readMetric(writer, 'sluice_writer_batch_failures_total');
      return failures >= FAILURES || performance.now() - firstAskedAt > LONGEST_MS;
    },
  });
});
