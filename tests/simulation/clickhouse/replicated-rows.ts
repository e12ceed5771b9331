import { storeProperty } from './statements.ts';
import { createTables, see, type Tables } from './tables.ts';

/** What the name of a table is in {@link Tables}. */
export const TABLES: Readonly<Record<string, keyof Tables>> = {
  events: 'events',
  entities: 'entities',
  entity_properties: 'properties',
  user_sightings: 'sightings',
  identity_links: 'links',
  dead_letters: 'deadLetters',
  user_deletions: 'deletions',
  identity_deletions: 'identityDeletions',
  pending_deletions: 'pendingDeletions',
  console_fast_properties: 'fastLists',
  writer_positions: 'positions',
  writer_halts: 'halts',
};

/** An insert into a table that replicas have in common. */
interface Insert {
  readonly into: keyof Tables;
  /** Whether it looks at the table that it stores into: then its rows are what is new there. */
  readonly looks?: boolean;
}

/** The inserts of the writer by their names, but for that of events. */
export const INSERTS: Readonly<Record<string, Insert>> = {
  'record-group': { into: 'groups', looks: true },
  'record-identity': { into: 'identities', looks: true },
  'record-topic-partitions': { into: 'topicPartitions', looks: true },
  'record-progress': { into: 'throughMs' },
  'store-deletions': { into: 'deletions' },
  'store-pending-deletions': { into: 'pendingDeletions' },
  'store-identity-deletions': { into: 'identityDeletions' },
  'settle-deletions': { into: 'identityDeletions' },
  'store-links': { into: 'links' },
  'store-properties': { into: 'properties' },
  'store-sightings': { into: 'sightings' },
  'store-seen-in-changes': { into: 'entities' },
  'store-seen-in-changes-since-deletions': { into: 'entities' },
  'store-seen-in-events': { into: 'entities' },
  'store-seen-in-events-since-deletions': { into: 'entities' },
  'store-seen-in-deleted-events': { into: 'entities' },
  'store-returned-users': { into: 'entities', looks: true },
  'store-dead-letters': { into: 'deadLetters' },
  'store-positions': { into: 'positions', looks: true },
  'record-halt': { into: 'halts', looks: true },
};

/** The tables that statements remove rows of. */
export const REMOVALS: Readonly<Record<string, keyof Tables>> = {
  'erase-events': 'events',
  'erase-events-of-visitors': 'events',
  'erase-properties': 'properties',
  'erase-sightings': 'sightings',
  'erase-links': 'links',
  'erase-entities': 'entities',
  'erase-dead-letters': 'deadLetters',
  'forget-erased': 'pendingDeletions',
};

/**
 * Returns the rows that an insert adds to a table, as tables that have nothing else.
 *
 * @param run does what the statement does, to the tables that it is given
 */
export function rowsOf(tables: Tables, { into, looks = false }: Insert, run: (tables: Tables) => void): Tables {
  const empty = createTables();
  const given = { ...tables, standIns: empty.standIns, [into]: looks ? copyOf(tables[into]) : empty[into] };
  run(given);
  tables.deadLetterTime = given.deadLetterTime;
  const rows = looks ? additions(given[into], tables[into]) : given[into];
  return { ...empty, [into]: rows, standIns: given.standIns };
}

/** Returns a copy whose tables may be changed, and not the rows in them. */
export function copyOfRows(rows: Tables): Tables {
  return Object.fromEntries(Object.entries(rows).map(([table, content]) => [table, copyOf(content)])) as never;
}

function copyOf<Content>(content: Content): Content {
  if (content instanceof Map) return new Map(content) as Content;
  if (content instanceof Set) return new Set(content) as Content;
  return Array.isArray(content) ? ([...content] as Content) : content;
}

function additions(after: unknown, before: unknown): unknown {
  if (after instanceof Map)
    return new Map([...after].filter(([key, row]) => (before as Map<unknown, unknown>).get(key) !== row));
  if (after instanceof Set) return (after as Set<unknown>).difference(before as Set<unknown>);
  return (after as unknown[]).slice((before as unknown[]).length);
}

export function isEmpty(content: unknown): boolean {
  if (content instanceof Map || content instanceof Set) return content.size === 0;
  return Array.isArray(content) ? content.length === 0 : content === 0;
}

/** Adds rows to tables as ClickHouse has them once it has merged their parts, in whichever order they came. */
export function addRows(tables: Tables, rows: Tables): void {
  for (const group of rows.groups) tables.groups.add(group);
  for (const attempt of rows.ended) tables.ended.add(attempt);
  for (const [name, row] of rows.replicas) {
    if (row.changedAt > (tables.replicas.get(name)?.changedAt ?? -1)) tables.replicas.set(name, row);
  }
  tables.epochs.push(...rows.epochs);
  for (const identity of rows.identities) tables.identities.push(identity);
  for (const [topic, count] of rows.topicPartitions) tables.topicPartitions.set(topic, count);
  for (const [name, row] of rows.positions) {
    if (row.storedAt > (tables.positions.get(name)?.storedAt ?? -1)) tables.positions.set(name, row);
  }
  for (const [name, row] of rows.halts) {
    if (row.stateAt > (tables.halts.get(name)?.stateAt ?? -1)) tables.halts.set(name, row);
  }
  for (const [user, version] of rows.deletions) {
    tables.deletions.set(user, Math.max(version, tables.deletions.get(user) ?? 0));
  }
  for (const [key, row] of rows.identityDeletions) {
    if (row.settledAtMs >= (tables.identityDeletions.get(key)?.settledAtMs ?? 0))
      tables.identityDeletions.set(key, row);
  }
  for (const [key, fact] of rows.links) tables.links.set(key, fact);
  for (const [key, row] of rows.properties) storeProperty(tables, key, row);
  for (const row of rows.entities.values()) {
    const key = [row.workspace, row.kind, row.id, row.otherId] as const;
    see(tables, key, { timeMs: row.firstSeenMs, version: row.version });
    see(tables, key, { timeMs: row.lastSeenMs, version: row.version });
  }
  for (const [user, times] of rows.standIns) {
    tables.standIns.set(user, [...(tables.standIns.get(user) ?? []), ...times]);
  }
  for (const [id, row] of rows.deadLetters) {
    if (row.stateAt >= (tables.deadLetters.get(id)?.stateAt ?? 0)) tables.deadLetters.set(id, row);
  }
  tables.throughMs = Math.max(tables.throughMs, rows.throughMs);
  tables.pendingDeletions.push(...rows.pendingDeletions);
  tables.sightings.push(...rows.sightings);
  tables.events.push(...rows.events);
}
