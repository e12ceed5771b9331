import type { EventRow } from '@sluice/shared/rows';
import { personKey } from '../clickhouse/tables.ts';
import type { PartitionLog } from '../kafka/partition-log.ts';
import { identityOf, repeats } from './event-identity.ts';

/** Where something is in a log. */
interface Place {
  readonly log: PartitionLog;
  readonly place: number;
}

interface SentEvent extends Place {
  readonly row: EventRow;
}

/** A copy of a deletion. */
interface SentDeletion extends Place {
  readonly user: string;
  readonly version: number;
}

/** What becomes of events. Of those in neither set, nothing is visible. */
export interface Fates {
  /** They are stored, and no deletion hides them. */
  readonly staying: ReadonlySet<EventRow>;
  /**
   * They repeat an earlier event, and one of the two is of a user whose deletion is not before the later one in their
   * partition, or the earlier one is open itself. A copy of the deletion in another partition may be stored before the two,
   * between them, or after them. So it depends on the moment whether the earlier one is there to be repeated, and whether a
   * later one that is deleted itself counts as a repeat, which names no organization, or as an event of a deleted user,
   * which does.
   */
  readonly open: ReadonlySet<EventRow>;
}

/**
 * Returns what becomes of events as far as the log alone decides it, whatever batches they come in.
 *
 * @param events in the order of their logs; those with one uuid are in one log
 */
export function fatesOf(events: readonly SentEvent[], deletions: readonly SentDeletion[]): Fates {
  const [staying, open] = [new Set<EventRow>(), new Set<EventRow>()];
  const byUser = Map.groupBy(deletions, ({ user }) => user);
  const deletionsOf = ({ row }: SentEvent) =>
    (byUser.get(personKey(row)) ?? []).filter(({ version }) => version >= row.received_at);
  const isDeleted = (event: SentEvent) => deletionsOf(event).length > 0;
  /** Whether whoever has read a log up to a place knows that an event is deleted. */
  const isGoneAt = (event: SentEvent, { log, place }: Place) =>
    deletionsOf(event).some((deletion) => deletion.log === log && deletion.place < place);

  for (const copies of Map.groupBy(events, ({ row }) => identityOf(row)).values()) {
    /** The copies that are stored, or may be, for a later one to repeat. */
    const stored: SentEvent[] = [];
    for (const event of copies.filter((copy) => !isGoneAt(copy, copy))) {
      const originals = stored.filter(({ row }) => repeats(event.row, row)).filter((one) => !isGoneAt(one, event));
      const isSurelyRepeat = originals.some((original) => !open.has(original.row) && !isDeleted(original));
      if (originals.length > 0 && (isDeleted(event) || !isSurelyRepeat)) open.add(event.row);
      if (originals.length === 0 && !isDeleted(event)) staying.add(event.row);
      if (!isSurelyRepeat) stored.push(event);
    }
  }
  return { staying, open };
}
