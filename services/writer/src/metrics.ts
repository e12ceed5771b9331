import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import { sizeOf } from './batch-size.ts';
import type { SourceMessage } from './row-batch.ts';

/** What the writer counts. */
export function createWriterMetrics(registry: Registry) {
  const registers = [registry];
  const messages = new Counter({
    name: 'sluice_writer_messages_stored_total',
    help: 'Kafka messages stored.',
    registers,
  });
  const bytes = new Counter({ name: 'sluice_writer_bytes_stored_total', help: 'Bytes of rows stored.', registers });
  const seconds = new Histogram({
    name: 'sluice_writer_batch_seconds',
    help: 'Time to store a batch.',
    buckets: [0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
    registers,
  });
  return {
    storeFailures: new Counter({
      name: 'sluice_writer_batch_failures_total',
      help: 'Attempts to store a batch that failed and were repeated.',
      registers,
    }),
    deadLetters: new Counter({
      name: 'sluice_writer_dead_letters_total',
      help: 'Rows that could not be stored and were put into dead_letters.',
      registers,
    }),
    rowsDropped: new Counter({
      name: 'sluice_writer_rows_dropped_total',
      help: 'Acknowledged rows that were not stored. user_deleted: their user was deleted after their receipt.',
      labelNames: ['reason'],
      registers,
    }),
    deadLetterAlarm: new Gauge({
      name: 'sluice_writer_dead_letter_alarm',
      help: '1 while more than 1 % of the rows of the last five minutes (and more than a hundred) could not be stored.',
      registers,
    }),
    halted: new Gauge({
      name: 'sluice_writer_halted_partitions',
      help: '1 for each partition of this writer that is halted until an operator resumes it.',
      labelNames: ['topic', 'partition'],
      registers,
    }),
    stored(stored: readonly SourceMessage[], durationSeconds: number) {
      messages.inc(stored.length);
      bytes.inc(stored.reduce((sum, message) => sum + sizeOf(message), 0));
      seconds.observe(durationSeconds);
    },
  };
}

export type WriterMetrics = ReturnType<typeof createWriterMetrics>;
