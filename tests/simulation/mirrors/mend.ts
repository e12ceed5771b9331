import type { Both } from '@sluice/servers/compare/different-keys';
import { planMending, type ShownEvent } from '@sluice/servers/compare/plan-mending';
import type { EventRow } from '@sluice/shared/rows';
import { describeRange } from '@sluice/shared/servers/partition-range';
import { type EntityRow, personKey, type StoredEvent, see, type Tables, userKey } from '../clickhouse/tables.ts';
import type { Random } from '../world/random.ts';
import { checkEqual } from '../writer/equal-servers.ts';
import { contentOf, identityOf } from '../writer/event-identity.ts';
import { recover } from '../writer/kind.ts';
import { RowSender } from '../writer/row-sender.ts';
import type { World } from '../writer/world.ts';

/** How often an operator mends at most. */
const ROUNDS_MAX = 6;

interface ShownRow extends ShownEvent {
  readonly row: StoredEvent;
}

/**
 * An operator mends each pair of mirrors (`servers compare --mend`), some of them twice at once, until nothing is left to mend.
 * Then they are equal without an exception. Where the log has lost records, nothing is compared.
 */
export async function mendMirrors(world: World, random: Random): Promise<void> {
  if (world.sent.hasLost) return;
  const ranges = [...Map.groupBy(world.servers, ({ range }) => describeRange(range)).values()];
  const pairs = ranges.flatMap((mirrors) =>
    mirrors.flatMap((one, at) => mirrors.slice(at + 1).map((other) => [one, other] as const)),
  );
  for (let round = 0; round < ROUNDS_MAX; round += 1) {
    let isMended = true;
    for (const [one, other] of pairs) {
      const tables = () => [one.clickhouse.tables, other.clickhouse.tables] as const;
      if (!mendPair(world, tables(), random.isTrue(0.3) ? 2 : 1)) continue;
      world.note(`${one.name} and ${other.name} are mended`);
      isMended = false;
      await recover(world);
      if (world.violation !== undefined) return;
    }
    if (isMended) break;
    if (round === ROUNDS_MAX - 1) world.report(`mirrors are not the same after they were mended ${ROUNDS_MAX} times`);
  }
  for (const { oracle } of world.servers) if (world.violation === undefined) oracle.checkEnd(false);
  if (world.violation === undefined) checkEqual(world, true);
}

/** Does what the command does to the tables of two servers. Returns whether there was something to mend. */
function mendPair(world: World, servers: Both<Tables>, times: number): boolean {
  const shown = servers.map((tables) => shownRows(tables, servers)) as unknown as Both<ShownRow[]>;
  const differing = differingIdentities(shown);
  const ofThese = (rows: readonly ShownRow[]) => rows.filter(({ row }) => differing.has(identityOf(row)));
  const { send, remove } = planMending([ofThese(shown[0]), ofThese(shown[1])]);
  const stored = mendEntities(servers);
  for (const [index, tables] of servers.entries()) {
    const removed = new Set(remove[index]?.map(({ row }) => row));
    tables.events = tables.events.filter((event) => !removed.has(event));
  }
  const sender = new RowSender(world);
  for (let time = 0; time < times; time += 1) {
    for (const { event, isStamped } of send) {
      const { month: _month, fast: _fast, stamped: _stamped, ...row } = event.row;
      const sent: EventRow = { ...row, ...(isStamped && { stamped: 1 as const }) };
      sender.sendEvents(sender.partitionOf(row.uuid), [sent]);
    }
  }
  return send.length > 0 || stored > 0 || remove.some((events) => events.length > 0);
}

/** Returns the events that a deletion hides on neither server. */
function shownRows(tables: Tables, servers: Both<Tables>): ShownRow[] {
  return tables.events
    .filter((event) => servers.every(({ deletions }) => event.received_at > (deletions.get(personKey(event)) ?? 0)))
    .map((row) => ({
      ...{ workspace: row.workspace_id, uuid: row.uuid, timeMs: row.timestamp, receivedUs: row.received_at },
      ...{ content: contentOf({ ...row, stamped: undefined } as unknown as EventRow), row },
    }));
}

function differingIdentities(shown: Both<readonly ShownRow[]>): ReadonlySet<string> {
  const [mine, theirs] = shown.map((rows) => new Set(rows.map(({ content }) => content)));
  const differing = [
    ...shown[0].filter(({ content }) => !theirs?.has(content)),
    ...shown[1].filter(({ content }) => !mine?.has(content)),
  ];
  return new Set(differing.map(({ row }) => identityOf(row)));
}

/** Stores the rows of users, organizations and memberships in which they differ. Returns how many. */
function mendEntities([one, other]: Both<Tables>): number {
  const [mine, theirs] = [rowsOf(one, other), rowsOf(other, one)];
  for (const row of mine) store(other, row);
  for (const row of theirs) store(one, row);
  return mine.length + theirs.length;
}

/** Returns copies of rows that another server lacks, or has otherwise, and that none of its deletions removes. */
function rowsOf(tables: Tables, other: Tables): EntityRow[] {
  const rows = [...tables.entities].flatMap(([key, row]) => {
    const there = other.entities.get(key);
    const { workspace, kind, id, otherId, version } = row;
    const deletedAt = other.deletions.get(userKey(workspace, kind === 'member' ? otherId : id)) ?? 0;
    if (there && isSame(there, row)) return [];
    if (kind === 'organization') return [row];
    if (version <= deletedAt) return [];
    if (kind !== 'user' || Number(otherId) >= deletedAt) return [row];
    // It may have times from before the deletion.
    const begun = other.entities.get([workspace, kind, id, String(deletedAt)].join('\0'));
    const changedMs = Math.floor(version / 1_000);
    if ((begun?.version ?? 0) >= version) return [];
    return [{ ...row, otherId: String(deletedAt), firstSeenMs: changedMs, lastSeenMs: changedMs }];
  });
  return rows.map((row) => ({ ...row }));
}

function isSame(one: EntityRow, other: EntityRow): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

function store(tables: Tables, { workspace, kind, id, otherId, firstSeenMs, lastSeenMs, version }: EntityRow): void {
  const key = [workspace, kind, id, otherId] as const;
  see(tables, key, { timeMs: firstSeenMs, version });
  see(tables, key, { timeMs: lastSeenMs, version });
}
