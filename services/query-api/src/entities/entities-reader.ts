import type { QueryContext, QueryRunner } from '../clickhouse/query-runner.ts';
import { type EntitiesSelection, entitiesQuery, propertiesQuery, timesSinceDeletionQuery } from './entities-query.ts';
import type { EntityKind } from './entity-kinds.ts';
import type { Entity } from './entity-record.ts';

/**
 * How many bytes of identifiers one query may name: ClickHouse takes 128 KiB of a parameter, and escaping may quadruple
 * them.
 */
const IDENTIFIER_BYTES_MAX = 20 * 1_024;

interface Identity {
  readonly id: string;
  readonly firstSeenMs: number;
  readonly lastSeenMs: number;
  /** When the last change was accepted. */
  readonly changedMs: number;
}

interface SeenTimes {
  readonly firstMs: number;
  readonly lastMs: number;
}

/** Reads the users or organizations of a selection that exist, in the order of their identifiers. */
export async function* readEntities(
  queryRunner: QueryRunner,
  kind: EntityKind,
  selection: EntitiesSelection,
  context: QueryContext,
): AsyncGenerator<Entity, void, undefined> {
  const rows = await queryRunner.all({ kind: 'entities_page', ...context, ...entitiesQuery(kind, selection) });
  const identities = (rows as [string, number, number, number][]).map(
    ([id, firstSeenMs, lastSeenMs, version]): Identity => ({
      ...{ id, firstSeenMs, lastSeenMs },
      changedMs: Math.floor(version / 1_000),
    }),
  );
  for (const group of groupsOf(identities)) {
    const ids = group.map(({ id }) => id);
    const [times, properties] = await Promise.all([
      kind === 'user' ? timesSinceDeletion(queryRunner, ids, context) : new Map<string, SeenTimes>(),
      currentProperties(queryRunner, kind, ids, context),
    ]);
    for (const { changedMs, ...identity } of group) {
      const since = times.get(identity.id);
      // Until an event or a sighting since the deletion is stored, the time of the last change stands in for it.
      const seen = since && { firstSeenMs: since.firstMs || changedMs, lastSeenMs: since.lastMs || changedMs };
      yield { ...identity, ...seen, properties: properties.get(identity.id) ?? [] };
    }
  }
}

/** When users that were deleted and exist again have been seen since. */
async function timesSinceDeletion(
  queryRunner: QueryRunner,
  ids: readonly string[],
  context: QueryContext,
): Promise<Map<string, SeenTimes>> {
  const rows = await queryRunner.all({ kind: 'entity_times', ...context, ...timesSinceDeletionQuery(ids) });
  return new Map((rows as [string, number, number][]).map(([id, firstMs, lastMs]) => [id, { firstMs, lastMs }]));
}

async function currentProperties(
  queryRunner: QueryRunner,
  kind: EntityKind,
  ids: readonly string[],
  context: QueryContext,
): Promise<Map<string, [string, string][]>> {
  const rows = await queryRunner.all({ kind: 'entity_properties', ...context, ...propertiesQuery(kind, ids) });
  const byId = Map.groupBy(rows as [string, string, string][], ([id]) => id);
  return new Map([...byId].map(([id, found]) => [id, found.map(([, name, json]) => [name, json])]));
}

/** Splits identities into groups whose identifiers fit into one query. */
function* groupsOf(items: readonly Identity[]): Generator<readonly Identity[]> {
  let group: Identity[] = [];
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
