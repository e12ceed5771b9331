import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { PartitionLag } from './kafka/lag.ts';

/**
 * Declares all metrics of the writer.
 *
 * @param readLag is called at each scrape; while it returns `undefined`, the metrics of the lag are absent
 */
export function createWriterMetrics(registry: Registry, readLag: () => Promise<readonly PartitionLag[] | undefined>) {
  const registers = [registry];
  declareLag(registry, readLag);
  return {
    storedMessages: new Counter({
      name: 'sluice_writer_stored_messages_total',
      help: 'Kafka messages stored.',
      registers,
    }),
    storedBytes: new Counter({
      name: 'sluice_writer_stored_bytes_total',
      help: 'Bytes of rows stored.',
      registers,
    }),
    batchDuration: new Histogram({
      name: 'sluice_writer_batch_duration_seconds',
      help: 'Time to store a batch.',
      buckets: [0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
      registers,
    }),
    batchFailures: new Counter({
      name: 'sluice_writer_batch_failures_total',
      help: 'Attempts to store a batch that failed and were retried.',
      registers,
    }),
    deadLetters: new Counter({
      name: 'sluice_writer_dead_letters_total',
      help: 'Rows that could not be stored and were put into dead_letters.',
      registers,
    }),
    deadLetterAlarm: new Gauge({
      name: 'sluice_writer_dead_letter_alarm',
      help: '1 while more than 1 % of the rows of the last five minutes (and more than a hundred) could not be stored.',
      registers,
    }),
    droppedRows: new Counter({
      name: 'sluice_writer_dropped_rows_total',
      help: 'Accepted rows that were not stored. Reason user_deleted: their user was deleted after they were accepted.',
      labelNames: ['reason'],
      registers,
    }),
    misplacedMessages: new Counter({
      name: 'sluice_writer_misplaced_messages_total',
      help: 'Messages of an ingest-api with another KAFKA_PARTITIONS than this writer.',
      registers,
    }),
    haltedPartitions: new Gauge({
      name: 'sluice_writer_halted_partitions',
      help: '1 for each partition of this writer that is halted until an operator resumes it.',
      labelNames: ['topic', 'partition'],
      registers,
    }),
  };
}

export type WriterMetrics = ReturnType<typeof createWriterMetrics>;

function declareLag(registry: Registry, readLag: () => Promise<readonly PartitionLag[] | undefined>): void {
  function declare(name: string, help: string, read: (lag: PartitionLag) => number): void {
    const gauge: Gauge = new Gauge({
      name,
      help,
      labelNames: ['topic', 'partition'],
      registers: [registry],
      async collect() {
        const lags = await readLag();
        if (!lags) gauge.reset();
        for (const lag of lags ?? []) gauge.set({ topic: lag.topic, partition: lag.partition }, read(lag));
      },
    });
  }

  declare(
    'sluice_writer_lag_messages',
    'Messages of a partition that the writers have not committed, whichever writer owns it.',
    ({ messages }) => messages,
  );
  declare(
    'sluice_writer_lag_seconds',
    'Age of the oldest message of a partition that the writers have not committed; 0 when there is none.',
    ({ seconds }) => seconds,
  );
}
