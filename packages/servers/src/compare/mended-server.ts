import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { PERSON_SQL } from '@sluice/shared/rows/deleted-person';
import { EVENT_IDENTIFIERS, type IdentifierColumn } from '@sluice/shared/rows/event-identifiers';
import { ClickHouseSession } from '@sluice/storage/clickhouse/clickhouse-session';
import { deletedVersionOf, lastDeletionsOf } from '@sluice/storage/clickhouse/deleted-versions';
import { requireNoRemovals } from '@sluice/storage/clickhouse/removals';
import { EVENT_CONTENT } from './compared-tables.ts';
import type { ShownEvent } from './plan-mending.ts';

/** How long a statement may take that stores, in milliseconds: less than a deletion waits to be erased (ERASURE_DELAY_MS). */
const STORE_MS_MAX = 10_000;

/** How long a statement may take that removes, in milliseconds. */
export const REMOVE_MS_MAX = 600_000;

/** How many keys a statement names. */
const NAMED_MAX = 100;

/** A workspace and a uuid. */
export interface EventIdentity {
  readonly workspace: string;
  readonly uuid: string;
}

/** An event as the table has it, with all that its row in Kafka needs. */
export type WholeEvent = ShownEvent &
  Readonly<Record<IdentifierColumn | 'type' | 'event' | 'user_id' | 'group_id', string>> & {
    /** As a deletion names its user or visitor. */
    readonly user: string;
    /** The partition of the table `events`. */
    readonly partition: string;
    /** Each is JSON text. */
    readonly properties: string;
    readonly context: string;
    readonly traits: string;
  };

/** A row of `entities`. */
export interface EntityRow {
  readonly workspace_id: string;
  readonly kind: string;
  readonly id: string;
  readonly other_id: string;
  readonly first_seen_at: string;
  readonly last_seen_at: string;
  readonly version: number;
  /** Whose deletion it is subject to; empty of an organization. */
  readonly user: string;
}

/** The key of an entity. A user has a row for each deletion after which it begins: all of them are meant. */
export interface EntityKey {
  readonly workspace: string;
  readonly kind: string;
  readonly id: string;
  readonly other: string;
}

// The first condition is that of the text index.
const SAME_UUID = `
  substring(toString(uuid), 31) IN arrayMap(one -> substring(one, 31), {uuids:Array(String)})
  AND (toString(workspace_id), toString(uuid)) IN arrayZip({workspaces:Array(String)}, {uuids:Array(String)})`;

// The names of columns that have another form here differ from theirs.
const WHOLE_EVENTS = {
  name: 'read-whole-events',
  sql: `
SELECT
  toString(workspace_id) AS workspace, toString(events.uuid) AS uuid, toUnixTimestamp64Milli(timestamp) AS timeMs,
  toUnixTimestamp64Micro(received_at) AS receivedUs, toString(${EVENT_CONTENT}) AS content, ${PERSON_SQL} AS user,
  _partition_id AS partition, type, event, user_id, group_id,
  ${EVENT_IDENTIFIERS.map(({ column }) => column).join(', ')}, properties, context, traits
FROM events WHERE ${SAME_UUID.replaceAll('(uuid)', '(events.uuid)')}`,
};

const ENTITIES = {
  name: 'read-entities',
  sql: `
SELECT
  toString(workspace_id) AS workspace_id, toString(kind) AS kind, id, other_id, toString(min(entities.first_seen_at)) AS first_seen_at,
  toString(max(entities.last_seen_at)) AS last_seen_at, max(entities.version) AS version,
  multiIf(kind = 'organization', '', kind = 'member', other_id, id) AS user
FROM entities
WHERE entities.workspace_id IN {workspaces:Array(String)} AND id IN {ids:Array(String)}
  AND (toString(workspace_id), toString(kind), id, if(kind = 'user', '', other_id))
    IN arrayZip({workspaces:Array(String)}, {kinds:Array(String)}, {ids:Array(String)}, {others:Array(String)})
GROUP BY workspace_id, kind, id, other_id`,
};

const STAGE_ENTITIES = {
  name: 'stage-mended-entities',
  sql: `
CREATE TEMPORARY TABLE mended_entities (
  workspace_id String, kind String, id String, other_id String, first_seen_at DateTime64(3, 'UTC'),
  last_seen_at DateTime64(3, 'UTC'), version UInt64, user String
) ENGINE = Memory`,
};

const LOAD_ENTITIES = { name: 'load-mended-entities', sql: 'INSERT INTO mended_entities FORMAT JSONEachRow' };

const MENDED_USERS = { column: 'user', from: 'mended_entities' };

// This insert must know every deletion that may be erased before it ends: nothing would remove what it stores afterwards. A row of
// a user that begins before the last deletion, and goes on after it, may have times from before: the receipt of its last change
// stands in for them, as where the erasure finds no event.
const STORE_ENTITIES = {
  name: 'store-mended-entities',
  sql: `
INSERT INTO entities (workspace_id, kind, id, other_id, first_seen_at, last_seen_at, version)
WITH
  ${lastDeletionsOf(MENDED_USERS)} AS deletions,
  ${deletedVersionOf(MENDED_USERS)} AS deleted_version,
  kind = 'user' AND toUInt64OrZero(other_id) < deleted_version AS is_mixed,
  fromUnixTimestamp64Milli(toInt64(intDiv(version, 1000)), 'UTC') AS changed_at
SELECT
  workspace_id,
  kind,
  id,
  if(is_mixed, toString(deleted_version), other_id),
  if(is_mixed, changed_at, first_seen_at),
  if(is_mixed, changed_at, last_seen_at),
  version
FROM mended_entities
WHERE version > deleted_version`,
};

const REMOVE_EVENTS = {
  name: 'remove-repeats',
  sql: `
ALTER TABLE events DELETE IN PARTITION ID {partition:String}
WHERE ${SAME_UUID}
  AND (toString(workspace_id), toString(uuid), toUnixTimestamp64Milli(timestamp), toUnixTimestamp64Micro(received_at))
    IN arrayZip({workspaces:Array(String)}, {uuids:Array(String)}, {times:Array(Int64)}, {received:Array(Int64)})`,
};

/** A server in which differences are mended. Its methods throw ClickHouse's errors. */
export class MendedServer {
  readonly name: string;
  readonly #client: ClickHouseClient;
  readonly #queryIdPrefix: string;

  /** @param client its requests may take {@link REMOVE_MS_MAX} @param run identifies the command */
  constructor(name: string, client: ClickHouseClient, run: string) {
    this.name = name;
    this.#client = client;
    this.#queryIdPrefix = `sluice-mend/${run}/${name}`;
  }

  /** Returns all events of some uuids, also those of deleted users. */
  async wholeEvents(identities: readonly EventIdentity[]): Promise<WholeEvent[]> {
    return await this.#inSession(STORE_MS_MAX, (session) =>
      inChunks(identities, (some) =>
        session.read<WholeEvent>(WHOLE_EVENTS, {
          workspaces: some.map(({ workspace }) => workspace),
          uuids: some.map(({ uuid }) => uuid),
        }),
      ),
    );
  }

  async entities(keys: readonly EntityKey[]): Promise<EntityRow[]> {
    return await this.#inSession(STORE_MS_MAX, (session) =>
      inChunks(keys, (some) =>
        session.read<EntityRow>(ENTITIES, {
          workspaces: some.map(({ workspace }) => workspace),
          kinds: some.map(({ kind }) => kind),
          ids: some.map(({ id }) => id),
          others: some.map(({ other }) => other),
        }),
      ),
    );
  }

  /** Stores rows of another server, which fold with those that are there. What a deletion removes is left out. */
  async storeEntities(rows: readonly EntityRow[]): Promise<void> {
    if (rows.length === 0) return;
    await this.#inSession(STORE_MS_MAX, async (session) => {
      await session.run(STAGE_ENTITIES);
      await session.load(LOAD_ENTITIES, [Buffer.from(rows.map((row) => `${JSON.stringify(row)}\n`).join(''))]);
      await session.run(STORE_ENTITIES);
    });
  }

  /** @throws {Error} while ClickHouse removes rows: it would remove others only afterwards */
  async requireNoRemovals(): Promise<void> {
    await this.#inSession(STORE_MS_MAX, (session) => requireNoRemovals(session));
  }

  /** Removes events, and returns when they are gone. */
  async remove(events: readonly WholeEvent[]): Promise<void> {
    if (events.length === 0) return;
    await this.#inSession(REMOVE_MS_MAX, async (session) => {
      for (const [partition, all] of Map.groupBy(events, (event) => event.partition)) {
        await inChunks(all, async (some) => {
          await session.run(REMOVE_EVENTS, {
            partition,
            workspaces: some.map(({ workspace }) => workspace),
            uuids: some.map(({ uuid }) => uuid),
            times: some.map(({ timeMs }) => timeMs),
            received: some.map(({ receivedUs }) => receivedUs),
          });
          return [];
        });
      }
    });
  }

  async #inSession<Result>(timeoutMs: number, work: (session: ClickHouseSession) => Promise<Result>): Promise<Result> {
    return await ClickHouseSession.use(this.#client, this.#queryIdPrefix, timeoutMs, work);
  }
}

async function inChunks<Item, Found>(items: readonly Item[], work: (some: readonly Item[]) => Promise<Found[]>) {
  const found: Found[] = [];
  for (let at = 0; at < items.length; at += NAMED_MAX) found.push(...(await work(items.slice(at, at + NAMED_MAX))));
  return found;
}
