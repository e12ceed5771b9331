import { declareReadGauge } from '@sluice/shared/service/read-gauge';
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

/** Declares the metrics of what this writer does. `measured-metrics.ts` has those that are read from Kafka and ClickHouse. */
export function createWriterMetrics(registry: Registry) {
  const registers = [registry];
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
    lastStored: new LastTime(registry, {
      name: 'sluice_writer_last_stored_timestamp_seconds',
      help: 'When this writer last stored a batch, in seconds since 1970; absent before the first one.',
    }),
    orderRecorded: new LastTime(registry, {
      name: 'sluice_writer_stream_order_timestamp_seconds',
      help: 'When this writer last recorded the order of streams of replicas, in seconds since 1970; absent where it does not record it.',
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
    erasureFailures: new Counter({
      name: 'sluice_erasure_failures_total',
      help: 'Rounds of the erasure of deleted users, of expired events, of filling columns of fast properties, of moving old events to a cold volume, or of late ones that wait for it, that failed, and are repeated.',
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

/** When something was last done here. The gauge is absent before the first time, and once it is not done here any more. */
class LastTime {
  #seconds: number | undefined;

  constructor(registry: Registry, gauge: { readonly name: string; readonly help: string }) {
    declareReadGauge(registry, gauge, () => (this.#seconds === undefined ? [] : [{ value: this.#seconds }]));
  }

  /** Notes that it is done now. */
  note(): void {
    this.#seconds = Date.now() / 1_000;
  }

  /** Notes that it is not done here any more. */
  forget(): void {
    this.#seconds = undefined;
  }
}
