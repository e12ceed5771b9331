import {
  type RequestQueries,
  type Sql,
  type Tables,
  timesTogetherSinceDeletionQuery,
  withDeletions,
} from '../../store/store.ts';
import { groupsOf, idsOf } from './candidates.ts';
import { FEW_ROWS } from './candidates-query.ts';
import type { EntityKind } from './entity-kinds.ts';
import type { SeenEntity } from './entity-record.ts';

/** Times in milliseconds, the version in microseconds. */
type MembershipRow = [otherId: string, firstSeenMs: number, lastSeenMs: number, version: number];

type TimesRow = [user: string, organization: string, firstSeenMs: number, lastSeenMs: number];

/** What a page of memberships holds. */
export interface MembershipsPage {
  /** The kind of the entity whose memberships these are, and its identifier. */
  readonly kind: EntityKind;
  readonly id: string;
  /** The identifier after which the page begins; empty for the first page. */
  readonly after: string;
  readonly rowsMax: number;
}

/** Reads the memberships of a page, in the order of their identifiers. */
export async function* readMemberships(
  queries: RequestQueries,
  { kind, id, rowsMax, ...page }: MembershipsPage,
): AsyncGenerator<SeenEntity, void, undefined> {
  let { after } = page;
  let left = rowsMax;
  for (;;) {
    const memory = queries.memory?.part();
    const options = { settings: FEW_ROWS, memory };
    const otherIds = idsOf(
      await queries.all(
        'memberships_page',
        (tables) => nextMembershipsQuery(tables, kind, id, after, rowsMax),
        options,
      ),
    );
    for (const group of groupsOf(otherIds)) {
      for (const membership of await currentMemberships(queries, kind, id, group)) {
        yield membership;
        left -= 1;
        if (left === 0) return;
      }
    }
    if (otherIds.length < rowsMax) return;
    after = otherIds.at(-1) ?? after;
    memory?.release();
  }
}

/** Returns those of some memberships that no deletion of the user hides. */
async function currentMemberships(
  queries: RequestQueries,
  kind: EntityKind,
  id: string,
  otherIds: readonly string[],
): Promise<readonly SeenEntity[]> {
  const read = () => queries.all('memberships_page', (tables) => membershipsQuery(tables, kind, id, otherIds));
  const [rows, deletions] = await withDeletions(queries, kind === 'user' ? [id] : otherIds, read);
  const userOf = (otherId: string) => (kind === 'user' ? id : otherId);
  const current = (rows as MembershipRow[]).filter(
    ([otherId, , , version]) => !deletions.hide(userOf(otherId), version),
  );
  const returned = current.map(([otherId]) => otherId).filter((otherId) => deletions.has(userOf(otherId)));
  const since = await timesSinceDeletion(queries, kind, id, returned);
  return current.map(([otherId, firstSeenMs, lastSeenMs, version]) => {
    if (!deletions.has(userOf(otherId))) return { id: otherId, firstSeenMs, lastSeenMs };
    // Until an event since the deletion is stored, the time of its receipt stands in for it.
    const receivedMs = Math.floor(version / 1_000);
    const [firstMs, lastMs] = since.get(otherId) ?? [receivedMs, receivedMs];
    return { id: otherId, firstSeenMs: firstMs, lastSeenMs: lastMs };
  });
}

async function timesSinceDeletion(
  queries: RequestQueries,
  kind: EntityKind,
  id: string,
  otherIds: readonly string[],
): Promise<ReadonlyMap<string, readonly [firstMs: number, lastMs: number]>> {
  if (otherIds.length === 0) return new Map();
  const [users, organizations] = kind === 'user' ? [[id], otherIds] : [otherIds, [id]];
  const query = (tables: Tables) => timesTogetherSinceDeletionQuery(tables, users, organizations);
  const rows = (await queries.all('membership_times', query)) as TimesRow[];
  return new Map(
    rows.map(([user, organization, firstMs, lastMs]) => [kind === 'user' ? organization : user, [firstMs, lastMs]]),
  );
}

// The memberships of a user are its organizations, those of an organization its users.

/** As the column `kind` holds the memberships of each kind. */
const KINDS = { user: 'membership', organization: 'member' } as const satisfies Record<EntityKind, string>;

/** Returns the query for the first `count` identifiers after `after` of the memberships of an entity. */
export function nextMembershipsQuery(tables: Tables, kind: EntityKind, id: string, after: string, count: number): Sql {
  return {
    // DISTINCT ends with the last row that is needed; GROUP BY would read all memberships.
    sql: `SELECT DISTINCT other_id
FROM ${tables.entities}
WHERE kind = {kind:String} AND id = {id:String} AND other_id > {after:String}
ORDER BY other_id
LIMIT {count:UInt64}`,
    params: { kind: KINDS[kind], id, after, count },
  };
}

/**
 * Returns the query for some memberships of an entity, ordered by identifier: when the two were first and last seen
 * together, in milliseconds, and the version of the last submission that names both, in microseconds.
 */
export function membershipsQuery(tables: Tables, kind: EntityKind, id: string, otherIds: readonly string[]): Sql {
  return {
    sql: `SELECT other_id, toUnixTimestamp64Milli(min(first_seen_at)), toUnixTimestamp64Milli(max(last_seen_at)), max(version)
FROM ${tables.entities}
WHERE kind = {kind:String} AND id = {id:String} AND other_id IN {other_ids:Array(String)}
GROUP BY other_id
ORDER BY other_id`,
    params: { kind: KINDS[kind], id, other_ids: otherIds },
  };
}
