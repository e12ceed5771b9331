import type { LastDeletions } from '../../store/deletions/last-deletions.ts';
import { returnedUsersRowsQuery, timesSinceDeletionQuery } from '../../store/deletions/returned-users.ts';
import type { RequestQueries } from '../../store/request-queries.ts';
import type { SeenEntity } from './entity-record.ts';

/** How a user is stored. Times in milliseconds, versions in microseconds. `begin`: the deletion after which the row begins. */
type UserRow = [id: string, firstSeenMs: number, lastSeenMs: number, version: number, begin: number];

type TimesRow = [id: string, firstSeenMs: number, lastSeenMs: number];

/** Returns when users who came back after a deletion were seen since then. */
export async function timesSinceDeletion(
  queries: RequestQueries,
  ids: readonly string[],
  deletions: LastDeletions,
): Promise<ReadonlyMap<string, SeenEntity>> {
  if (ids.length === 0) return new Map();
  const rows = (await queries.all('entity_times', (tables) => returnedUsersRowsQuery(tables, ids))) as UserRow[];
  const current = rows.filter(([id, , , version]) => !deletions.hide(id, version));
  const mayPrecede = ([id, , , , begin]: UserRow) => deletions.precede(id, begin);
  const mixed = current.filter(mayPrecede);
  const computed = await computeTimes(queries, mixed);
  const sure = current.filter((row) => !mayPrecede(row));
  const byId = Map.groupBy([...sure, ...computed], ([id]) => id);
  return new Map([...byId].map(([id, all]) => [id, seenIn(id, all)]));
}

/** Computes the times of users of whom a row may hold some from before the deletion. */
async function computeTimes(queries: RequestQueries, mixed: readonly UserRow[]): Promise<readonly TimesRow[]> {
  if (mixed.length === 0) return [];
  const ids = [...new Set(mixed.map(([id]) => id))];
  const found = (await queries.all('entity_times', (tables) => timesSinceDeletionQuery(tables, ids))) as TimesRow[];
  const times = new Map(found.map(([id, ...seen]) => [id, seen]));
  return [...Map.groupBy(mixed, ([id]) => id)].map(([id, rows]) => {
    // Until an event or a sighting since the deletion is stored, the time of the last change stands in for it.
    const changedMs = Math.floor(Math.max(...rows.map(([, , , version]) => version)) / 1_000);
    const [firstMs, lastMs] = times.get(id) ?? [0, 0];
    return [id, firstMs || changedMs, lastMs || changedMs];
  });
}

function seenIn(id: string, rows: readonly (UserRow | TimesRow)[]): SeenEntity {
  const firstSeenMs = Math.min(...rows.map(([, firstMs]) => firstMs));
  return { id, firstSeenMs, lastSeenMs: Math.max(...rows.map(([, , lastMs]) => lastMs)) };
}
