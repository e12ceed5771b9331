import { crc32 } from 'node:zlib';
import type { Admin } from 'kafkajs';
import type { Database } from './database.ts';
import type { Selection } from './intake.ts';
import { isSelected } from './intake.ts';
import type { Stray } from './join-events.ts';
import { readLog } from './log-reader.ts';
import { rowsOf } from './log-rows.ts';
import type { Pace } from './pace.ts';
import type { Pending } from './pending.ts';
import { findEvents, LOOK_MAX } from './second-look.ts';
import { endsOf, type PartitionLog } from './topic-logs.ts';

/** By how much the clock of an ingest-api and the wait of its request move the time at which Kafka takes a row, in microseconds. */
const TAKEN_WITHIN_MICROS = 120_000_000;

export interface StraysOptions extends Selection {
  readonly admin: Admin;
  readonly database: Database;
  readonly logs: readonly PartitionLog[];
  readonly pace: Pace;
  /** When the writers noticed that a partition of the events had lost records, in milliseconds; 0: never. */
  readonly lostAtMs: (partition: number) => number;
  /** The window, in microseconds since 1970. */
  readonly since: number;
  readonly until: number;
  /** The numbers of partitions that the topic ever had. */
  readonly partitionCounts: readonly number[];
  readonly onInvented: (stray: Stray) => void;
}

/**
 * Looks again at stored events that the log, as far as it was read, does not have.
 *
 * @returns what has to be said of it
 * @throws kafkajs's and ClickHouse's errors
 */
export async function judgeStrays(strays: Pending<Stray>, options: StraysOptions): Promise<readonly string[]> {
  if (strays.count === 0) return [];
  const appended = await readTail(options);
  const notJudged = new Map<PartitionLog, number>();
  for await (const batch of strays.batches(LOOK_MAX)) {
    const unknown = batch.filter((stray) => !appended.has(nameOf(stray)));
    const rows = unknown.map(({ workspace, uuid, ms }) => ({ workspace, event: { uuid, ms, isStamped: false } }));
    const stored = await findEvents(options.database, rows);
    for (const stray of unknown) {
      const { workspace, uuid, ms, received } = stray;
      const found = stored.get(`${workspace}\0${uuid}`) ?? [];
      // It may have been erased since.
      if (!found.some((one) => one.ms === ms && one.received === received)) continue;
      const begun = options.partitionCounts
        .map((count) => options.logs.find((log) => log.role === 'events' && log.partition === crc32(uuid) % count))
        .find((log) => log && (beginsAfter(log, received) || received <= options.lostAtMs(log.partition) * 1_000));
      if (begun) notJudged.set(begun, (notJudged.get(begun) ?? 0) + 1);
      else options.onInvented(stray);
    }
  }
  return [...notJudged].map(([{ topic, partition, low }, rows]) =>
    options.lostAtMs(partition) > 0
      ? `The log of ${topic}/${partition} has lost records. They may be those of ${rows} stored events that it does not have.`
      : `${topic}/${partition} begins at offset ${low}, with a record that is newer than ${rows} stored events: they may have been in it ` +
        'before Kafka deleted its begin, or before the topic was created again.',
  );
}

/** Whether a row may have been before the first record that the log has now. */
function beginsAfter({ firstMs }: PartitionLog, received: number): boolean {
  return firstMs === undefined || received <= firstMs * 1_000 + TAKEN_WITHIN_MICROS;
}

function nameOf({ workspace, uuid, ms, received }: Stray): string {
  return `${workspace}\0${uuid}\0${ms}\0${received}`;
}

/** Returns the events of the window that came into the log since its end was noted, such as replayed dead letters. */
async function readTail({
  admin,
  logs,
  pace,
  since,
  until,
  ...selection
}: StraysOptions): Promise<ReadonlySet<string>> {
  const found = new Set<string>();
  const ofEvents = logs.filter(({ role }) => role === 'events');
  const ends = await endsOf(admin, ofEvents[0]?.topic ?? '');
  for (const { topic, partition, high } of ofEvents) {
    const piece = { topic, partition, from: high, to: ends.get(partition) ?? high };
    for await (const messages of readLog(admin, piece, pace)) {
      for (const message of messages) {
        for (const row of rowsOf(message)) {
          const { workspace, event, received } = row;
          if (!event || received < since || received >= until) continue;
          if (!isSelected(row, { partition, offset: Number(message.offset), line: row.line }, selection)) continue;
          found.add(nameOf({ workspace, uuid: event.uuid, ms: event.ms, received }));
        }
      }
    }
  }
  return found;
}
