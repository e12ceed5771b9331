import type { EventRow } from '@sluice/shared/rows';
import { describeRange } from '@sluice/shared/servers/partition-range';
import { subjectOf } from '../clickhouse/statements.ts';
import {
  eventKey,
  isHidden,
  personKey,
  rowsOfUser,
  type StoredEvent,
  type Tables,
  userKey,
} from '../clickhouse/tables.ts';
import { deletableUsersOf } from '../clickhouse/visitor-owner.ts';
import { contentOf } from './event-identity.ts';
import type { Server } from './server.ts';
import type { World } from './world.ts';

/** Rows by what identifies them, each as text that is the same for the same row. */
type Rows = ReadonlyMap<string, string>;

/** What is not decided by the log alone, as `fates.ts` describes it. */
interface Open {
  /** The contents of events. */
  readonly events: ReadonlySet<string>;
  /** Users, organizations and memberships that such events name, by the keys of their rows. */
  readonly entities: ReadonlySet<string>;
  /** Whether an operator has mended the differences between servers. */
  readonly isMended: boolean;
}

/**
 * Checks that all servers of the same partitions have the same rows, since they are fed from the same log. Nothing is compared
 * when the log has lost records: what one server stored before, another one never gets.
 *
 * @param isMended whether they are the same also in what the log alone does not decide
 */
export function checkEqual(world: World, isMended = false): void {
  if (world.sent.hasLost) return;
  const ranges = Map.groupBy(world.servers, ({ range }) => describeRange(range));
  for (const mirrors of ranges.values()) checkMirrors(world, mirrors, isMended);
}

function checkMirrors(world: World, [first, ...others]: readonly Server[], isMended: boolean): void {
  if (!first || others.length === 0) return;
  const open = { ...openOf(first), isMended };
  const expected = comparedRows(first.clickhouse.tables, open);
  for (const { name, clickhouse } of others) {
    const found = comparedRows(clickhouse.tables, open);
    for (const [table, rows] of Object.entries(expected)) {
      for (const difference of differences(rows, found[table as keyof typeof found])) {
        world.report(`${first.name} and ${name} differ in ${table}: ${difference}`);
      }
    }
  }
}

function differences(rows: Rows, others: Rows): string[] {
  const keys = new Set([...rows.keys(), ...others.keys()]);
  const texts = [...keys].map((key) => [rows.get(key), others.get(key)] as const);
  return texts
    .filter(([row, other]) => row !== other)
    .map(([row, other]) => `${row ?? 'nothing'}, ${other ?? 'nothing'}`);
}

/**
 * Where one of several events with a uuid is deleted, the others, and the organization that it names itself, may depend on
 * what a server has read by then: `fates.ts` says when. So do the rows of all users, organizations and memberships that
 * such an event names, and their times. Other events of the same users and organizations are compared.
 */
function openOf({ sent }: Server): Omit<Open, 'isMended'> {
  const deletions = sent.deletions();
  const open = [...sent.fates().open];
  const isDeleted = (event: EventRow) => event.received_at <= (deletions.get(personKey(event)) ?? 0);
  return {
    events: new Set(open.map(contentOf)),
    // The organization alone is seen of an event that is deleted anyway.
    entities: new Set(open.flatMap((event) => namedBy(isDeleted(event) ? { ...event, user_id: '' } : event))),
  };
}

/** Returns the keys of the users, organizations and memberships that an event names. */
function namedBy({ workspace_id, user_id = '', group_id = '' }: EventRow): string[] {
  const entities = [
    ...(user_id === '' ? [] : [['user', user_id, '']]),
    ...(group_id === '' ? [] : [['organization', group_id, '']]),
    ...(user_id === '' || group_id === ''
      ? []
      : [
          ['membership', user_id, group_id],
          ['member', group_id, user_id],
        ]),
  ];
  return entities.map((entity) => [workspace_id, ...entity].join('\0'));
}

/**
 * Returns the rows of a server that have to be equal to those of another one. What a deletion hides is left out: it depends
 * on the moment whether it was stored before the deletion, and whether it is erased by now. So are pending deletions.
 */
function comparedRows(tables: Tables, open: Open) {
  const deletedAt = (workspace: string, user: string) => tables.deletions.get(userKey(workspace, user)) ?? 0;
  const isCompared = (event: StoredEvent) => open.isMended || !open.events.has(contentOf(event));
  const events = tables.events.filter((event) => !isHidden(tables, event) && isCompared(event));
  const properties = [...tables.properties].filter(([, { workspace, kind, id, onceWeek, change }]) => {
    const deleted = kind === 'user' ? deletedAt(workspace, id) : 0;
    // What was set once first depends on what is erased by now, and does not count.
    return deleted === 0 || (onceWeek !== 1 && change.version > deleted);
  });
  const sightings = tables.sightings.filter(({ workspace, user, version }) => version > deletedAt(workspace, user));
  const links = [...tables.links].filter(([, fact]) =>
    deletableUsersOf(fact).every((user) => fact.version > deletedAt(fact.workspace, user)),
  );
  const deadLetters = [...tables.deadLetters].filter(([, deadLetter]) => {
    const { workspace_id, user_id, version } = subjectOf(deadLetter);
    return version > deletedAt(workspace_id, user_id);
  });
  return {
    // An event that is sent again to mend a server need not be stamped, which is not stored.
    events: new Map(events.map((event) => [eventKey(event), `${event.month} ${contentOf({ ...event, stamped: 1 })}`])),
    properties: new Map(properties.map(([key, { change }]) => [key, JSON.stringify(change)])),
    sightings: new Map(sightings.map((sighting) => [JSON.stringify(sighting), JSON.stringify(sighting)])),
    links: new Map(links.map(([key]) => [key, key])),
    entities: comparedEntities(tables, open),
    deletions: new Map([...tables.deletions].map(([user, version]) => [user, `${user} up to ${version}`])),
    // The place of one that came twice is that of the copy which was stored last, and reasons name others of the batch.
    'dead letters': new Map(deadLetters.map(([id, { kind, format, row }]) => [id, `${kind} ${format} ${row}`])),
  };
}

function comparedEntities(tables: Tables, open: Open): Rows {
  const rows = new Map<string, string>();
  for (const row of tables.entities.values()) {
    const { workspace, kind, id, otherId, version } = row;
    // The rows of a user begin after deletions: how many there are depends on which of these were known.
    const key = [workspace, kind, id, kind === 'user' ? '' : otherId].join('\0');
    const user = kind === 'member' ? otherId : id;
    const deletedAt = kind === 'organization' ? 0 : (tables.deletions.get(userKey(workspace, user)) ?? 0);
    if (version <= deletedAt || (open.entities.has(key) && !open.isMended)) continue;
    // Times of an organization may be those of events of deleted users.
    if (open.entities.has(key) && kind === 'organization') {
      rows.set(key, key);
      continue;
    }
    const newest = kind === 'user' ? newestVersion(tables, userKey(workspace, id)) : version;
    // Until the erasure, the row of a user who came back may have times from before the deletion.
    const times = deletedAt > 0 ? {} : { firstSeenMs: row.firstSeenMs, lastSeenMs: row.lastSeenMs };
    rows.set(key, JSON.stringify({ key, newest, ...times }));
  }
  return rows;
}

function newestVersion(tables: Tables, user: string): number {
  return Math.max(...rowsOfUser(tables, user).map(({ version }) => version));
}
