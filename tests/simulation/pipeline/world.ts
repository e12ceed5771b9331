import type { ChangeRow, EventRow } from '@sluice/shared/rows';
import { deadLetterId } from '@sluice/storage/protocol/dead-letter';
import { type IngestPlan, IngestSide } from '../ingest/ingest-side.ts';
import { linesOf } from '../ingest/row-identity.ts';
import type { LogRecord } from '../kafka/partition-log.ts';
import { Random } from '../world/random.ts';
import type { SentRow } from '../writer/sent-rows.ts';
import { World, type WorldOptions } from '../writer/world.ts';
import { Operator } from './operator.ts';

export type PipelineOptions = WorldOptions & IngestPlan;

/** Clients, ingest-apis, Kafka, writers, ClickHouse and an operator in one simulated world. */
export class PipelineWorld extends World {
  readonly side: IngestSide;
  readonly operator: Operator;

  constructor(options: PipelineOptions) {
    super(options);
    this.side = new IngestSide(this, options);
    this.operator = new Operator(this, new Random(options.seed, 'operator'));
    const { oracle } = this.side;
    this.kafka.producers = {
      refused: oracle.refused.bind(oracle),
      acknowledged: oracle.acknowledged.bind(oracle),
      appended: (log, records, sent) => {
        oracle.appended(log, records, sent);
        if (log.topic === this.side.clockTopic) return;
        // What is accepted is in Kafka, and what is in Kafka has to be stored.
        for (const record of records) {
          this.sent.add(log, record, rowsOf(record));
          for (const { kind, line } of linesOf(record)) if (kind === 'rejected') this.operator.rejected(line);
        }
      },
    };
    for (const log of this.kafka.logs) {
      if (log.topic !== this.side.clockTopic) log.batchBytesMax = options.batchBytesMax ?? log.batchBytesMax;
    }
  }
}

function rowsOf(record: LogRecord): SentRow[] {
  return linesOf(record).map(({ kind, line, row }) => {
    if (kind === 'rejected') {
      return { kind: 'poison', row: row as EventRow, deadLetterId: deadLetterId({ kind, row: Buffer.from(line) }) };
    }
    return kind === 'events' ? { kind: 'event', row: row as EventRow } : { kind: 'change', row: row as ChangeRow };
  });
}
