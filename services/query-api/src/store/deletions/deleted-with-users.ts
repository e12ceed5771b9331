import { isVisitor } from '@sluice/shared/rows/deleted-person';
import type { QueryContext } from '../query.ts';
import type { QueryRunner } from '../query-runner.ts';
import { DeletionsUnknown } from '../read-failures.ts';
import type { Sql } from '../sql.ts';
import { type Deletion, newestDeletions, type Tables } from '../tables.ts';
import { canBeNamed, hiddenEvents, hiddenEventsOfPersons } from './hidden-events.ts';

// Who is deleted with a deleted user: its visitors, whoever was merged into it, and their visitors. The writer sends a deletion of each; until
// these are stored, reads find out who they are.

/**
 * How many merges may follow one another. Each costs a statement, and whoever may send events can say as many as they like: ingest-api
 * reads nothing, so it refuses no chain.
 */
export const CHAINED_MERGES_MAX = 10;

/**
 * Reads who is deleted with the deleted users of a workspace and has no deletion of its own yet, as deletions name them.
 *
 * @param elsewhere deletions that other servers have
 * @throws {DeletionsUnknown} when more merges follow one another than may, until the writer has stored the deletions of some
 */
export async function readDeletedWithUsers(
  queryRunner: Pick<QueryRunner, 'all'>,
  workspace: string,
  context: Pick<QueryContext, 'signal' | 'store'>,
  elsewhere: readonly Deletion[] = [],
): Promise<readonly Deletion[]> {
  let merged: readonly Deletion[] = [];
  for (let chained = 0; chained <= CHAINED_MERGES_MAX; chained += 1) {
    const given = [...elsewhere, ...merged];
    const rows = await queryRunner.all({
      // What a statement of the workspace may return depends on this one.
      ...{ kind: 'identities', urgent: true, workspace: '', ...context },
      statement: (tables) => deletedWithUsersQuery(tables.ofWorkspaceIn('of').withDeletions(given), workspace),
    });
    const found = newestDeletions([...merged, ...rows.map(([user, version]) => deletionOf(user, version))]);
    const users = mergedAmong(found);
    const isKnown = ({ user, version }: Deletion) => merged.some((one) => one.user === user && one.version >= version);
    if (users.every(isKnown)) return found;
    // Their visitors are deleted, too.
    merged = users;
    requireNamed(merged);
  }
  throw new DeletionsUnknown(`more than ${CHAINED_MERGES_MAX} users became each other, up to a deleted one`);
}

function deletedWithUsersQuery({ deletedVisitors, params }: Tables, workspace: string): Sql {
  return {
    sql: `SELECT user_id, max(version) FROM ${deletedVisitors} GROUP BY user_id`,
    params: { ...params, of: workspace },
  };
}

function deletionOf(user: unknown, version: unknown): Deletion {
  return { user: user as string, version: version as number };
}

/** Returns the deletions of users among those of {@link readDeletedWithUsers}. */
export function mergedAmong(deletions: readonly Deletion[]): readonly Deletion[] {
  return deletions.filter(({ user }) => !isVisitor(user));
}

/** Returns what writes the condition that events are hidden, where these are deleted with their users. */
export function hidingWith(deletions: readonly Deletion[]): typeof hiddenEvents {
  if (deletions.length === 0) return hiddenEvents;
  if (canBeNamed(deletions)) return (tables) => hiddenEvents(tables.withDeletions(deletions));
  const merged = mergedAmong(deletions);
  // Where visitors are too many, each statement finds them by itself, which takes it a tenth of a second.
  return (tables) => hiddenEventsOfPersons(tables.withDeletions(merged));
}

/** @throws {DeletionsUnknown} when there are more than a statement may name: that is over once they are erased */
function requireNamed(merged: readonly Deletion[]): void {
  if (!canBeNamed(merged)) throw new DeletionsUnknown(`${merged.length} users are deleted with those whom they became`);
}
