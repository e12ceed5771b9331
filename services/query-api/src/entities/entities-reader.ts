import type { Store } from '../clickhouse/query-runner.ts';
import {
  type EntitiesQuestion,
  type EntityKind,
  entitiesQuery,
  propertiesQuery,
  timesSinceDeletionQuery,
} from './entities-query.ts';
import type { Entity } from './entity-record.ts';

/** How many bytes of identifiers one query may name: ClickHouse takes 128 KiB of a parameter, where each may become four. */
const IDENTIFIER_BYTES_MAX = 20 * 1_024;

interface Identity {
  readonly id: string;
  readonly firstSeenMs: number;
  readonly lastSeenMs: number;
}

/** Who asks, and until when. */
export interface Asker {
  readonly workspace: string;
  readonly signal: AbortSignal;
}

/** The users or organizations that exist and answer the question, in the order of their identifiers. */
export async function* readEntities(
  store: Store,
  kind: EntityKind,
  question: EntitiesQuestion,
  asker: Asker,
): AsyncGenerator<Entity, void, undefined> {
  const rows = await store.all({ kind: 'entities_page', ...asker, ...entitiesQuery(kind, question) });
  const identities = (rows as [string, number, number, number][]).map(([id, firstSeenMs, lastSeenMs, version]) => ({
    ...{ id, firstSeenMs, lastSeenMs },
    heardMs: Math.floor(version / 1_000),
  }));
  for (const group of groupsOf(identities)) {
    const ids = group.map(({ id }) => id);
    const [times, properties] = await Promise.all([
      kind === 'user' ? timesSinceDeletion(store, ids, asker) : new Map<string, Times>(),
      currentProperties(store, kind, ids, asker),
    ]);
    for (const { heardMs, ...identity } of group) {
      const since = times.get(identity.id);
      // What it was seen by is on its way when nothing is stored yet; the time it was accepted is known.
      const seen = since && { firstSeenMs: since.firstMs || heardMs, lastSeenMs: since.lastMs || heardMs };
      yield { ...identity, ...seen, properties: properties.get(identity.id) ?? [] };
    }
  }
}

interface Times {
  readonly firstMs: number;
  readonly lastMs: number;
}

/** Of users that were deleted and exist again, when they have been seen since. */
async function timesSinceDeletion(store: Store, ids: readonly string[], asker: Asker): Promise<Map<string, Times>> {
  const rows = await store.all({ kind: 'entity_times', ...asker, ...timesSinceDeletionQuery(ids) });
  return new Map((rows as [string, number, number][]).map(([id, firstMs, lastMs]) => [id, { firstMs, lastMs }]));
}

async function currentProperties(
  store: Store,
  kind: EntityKind,
  ids: readonly string[],
  asker: Asker,
): Promise<Map<string, [string, string][]>> {
  const rows = await store.all({ kind: 'entity_properties', ...asker, ...propertiesQuery(kind, ids) });
  const byId = Map.groupBy(rows as [string, string, string][], ([id]) => id);
  return new Map([...byId].map(([id, found]) => [id, found.map(([, name, json]) => [name, json])]));
}

/** Splits identities into groups whose identifiers fit into one query. */
function* groupsOf<Item extends Identity>(items: readonly Item[]): Generator<readonly Item[]> {
  let group: Item[] = [];
  let bytes = 0;
  for (const item of items) {
    const size = Buffer.byteLength(item.id);
    if (group.length > 0 && bytes + size > IDENTIFIER_BYTES_MAX) {
      yield group;
      group = [];
      bytes = 0;
    }
    group.push(item);
    bytes += size;
  }
  if (group.length > 0) yield group;
}
