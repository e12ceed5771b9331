import type { TemporaryTables } from '@sluice/storage/clickhouse/temporary-tables';
import type { StampedTimes } from '@sluice/storage/protocol/repeats';
import type { BatchContents } from '@sluice/storage/protocol/steps';
import { STATEMENTS } from './statements.ts';
import type { FastList } from './store-statements.ts';

/** The result of inspect-events. */
interface StagedEvents extends StampedTimes {
  readonly events: number;
  /** How many different events there are, by workspace, timestamp and uuid. */
  readonly keys: number;
  /** Partitions of the table, not of Kafka. */
  readonly partitions: number;
  readonly stamped_events: number;
  /** How many are timed by their receipt, as stamped ones are, and how many different workspaces and uuids these have. */
  readonly timed_events: number;
  readonly timed_uuids: number;
  /** Whether one of their users was ever deleted: 0 or 1. */
  readonly were_deleted: number;
  /** 0 or 1. */
  readonly may_be_deleted: number;
  /** What their workspaces declare as fast: the name of each, the set, and its names by column. */
  readonly fast: readonly FastList[];
}

/** The result of inspect-changes. */
interface StagedChanges {
  readonly seen: number;
  readonly properties: number;
  readonly deletions: number;
  /** Of visitors, and what somebody said of them. */
  readonly links: number;
  /** Whether one of their users was ever deleted: 0 or 1. */
  readonly were_deleted: number;
  /** 0 or 1. */
  readonly may_be_deleted: number;
}

/** The result of count-deleted-rows: rows that were accepted before their user was deleted. */
interface DeletedRows {
  readonly events: number;
  readonly changes: number;
}

const NO_EVENTS: StagedEvents = {
  events: 0,
  keys: 0,
  partitions: 0,
  stamped_events: 0,
  timed_events: 0,
  timed_uuids: 0,
  ...{ first_stamped: 0, last_stamped: 0, stamped_periods: [] },
  were_deleted: 0,
  may_be_deleted: 0,
  fast: [],
};
const NO_CHANGES: StagedChanges = {
  seen: 0,
  properties: 0,
  deletions: 0,
  links: 0,
  were_deleted: 0,
  may_be_deleted: 0,
};
const NONE_DELETED: DeletedRows = { events: 0, changes: 0 };

/** What the staged rows of a batch are. */
export interface StagedRows {
  readonly events: StagedEvents;
  readonly changes: StagedChanges;
  /** Whether one of their users was ever deleted. */
  readonly haveDeletions: boolean;
  readonly deleted: DeletedRows;
}

/**
 * Finds out what the staged rows are, and drops those that were accepted before their user was deleted.
 *
 * @param server the name of the ClickHouse server at which they are to be staged; another one refuses
 * @throws ClickHouse's errors
 */
export async function inspectStagedRows(
  session: TemporaryTables,
  contents: Pick<BatchContents, 'hasEvents' | 'hasChanges'>,
  server: string,
): Promise<StagedRows> {
  const events = contents.hasEvents ? await readOne<StagedEvents>(session, 'inspect-events', { server }) : NO_EVENTS;
  const changes = contents.hasChanges
    ? await readOne<StagedChanges>(session, 'inspect-changes', { server })
    : NO_CHANGES;
  const mayBeDeleted = events.may_be_deleted + changes.may_be_deleted > 0;
  return {
    events,
    changes,
    haveDeletions: events.were_deleted + changes.were_deleted > 0,
    deleted: mayBeDeleted ? await dropDeleted(session, contents) : NONE_DELETED,
  };
}

async function dropDeleted(
  session: TemporaryTables,
  { hasEvents, hasChanges }: Pick<BatchContents, 'hasEvents' | 'hasChanges'>,
): Promise<DeletedRows> {
  if (!hasEvents) await session.run(STATEMENTS['stage-events']);
  if (!hasChanges) await session.run(STATEMENTS['stage-changes']);
  await session.run(STATEMENTS['find-deletions']);
  const deleted = await readOne<DeletedRows>(session, 'count-deleted-rows');
  if (deleted.events > 0) {
    await session.run(STATEMENTS['store-seen-in-deleted-events']);
    await session.run(STATEMENTS['drop-deleted-events']);
  }
  if (deleted.changes > 0) await session.run(STATEMENTS['drop-deleted-changes']);
  return deleted;
}

async function readOne<Row>(
  session: TemporaryTables,
  name: keyof typeof STATEMENTS,
  parameters: Readonly<Record<string, unknown>> = {},
): Promise<Row> {
  const [row] = await session.read<Row>(STATEMENTS[name], parameters);
  if (!row) throw new Error(`${name} returned no row`);
  return row;
}
