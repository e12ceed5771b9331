import { anonymousIdOf, isVisitor, visitorOf } from '@sluice/shared/rows/deleted-person';
import { requireNoRemovals } from '@sluice/storage/clickhouse/removals';
import type { TemporaryTables } from '@sluice/storage/clickhouse/temporary-tables';
import type { DueErasure } from './erasure-passes.ts';
import { STATEMENTS } from './statements.ts';

/** In the order in which they run. */
const ERASE_STATEMENTS = {
  events: STATEMENTS['erase-events'],
  'events-of-visitors': STATEMENTS['erase-events-of-visitors'],
  properties: STATEMENTS['erase-properties'],
  sightings: STATEMENTS['erase-sightings'],
  links: STATEMENTS['erase-links'],
  entities: STATEMENTS['erase-entities'],
  'dead-letters': STATEMENTS['erase-dead-letters'],
} as const;

/** Where rows of one deleted user or visitor are stored. `partition` is a partition of the table `events`, or empty. */
interface DeletedRows {
  readonly workspace_id: string;
  readonly user_id: string;
  readonly source: keyof typeof ERASE_STATEMENTS;
  readonly partition: string;
}

/** A user of a pass who came back, and of whom a row may hold times from before the deletion and after it. */
interface MixedUser {
  readonly workspace_id: string;
  readonly user_id: string;
  readonly newest_version: number;
}

/**
 * Removes those deletions of a pass from the pending ones that nothing is stored of. Returns how many.
 *
 * @param others sessions at other replicas: one may still have to remove what the first one has removed
 */
export async function forgetUsersWithoutRows(
  session: TemporaryTables,
  pass: readonly DueErasure[],
  others: readonly TemporaryTables[] = [],
): Promise<number> {
  const withRows = new Set<string>();
  for (const one of [session, ...others]) {
    for (const rows of await findDeletedRows(one, pass)) withRows.add(userKey(rows));
  }
  const without = pass.filter((deletion) => !withRows.has(userKey(deletion)));
  if (without.length > 0) await session.run(STATEMENTS['forget-erased'], parametersOf(without));
  return without.length;
}

/**
 * Removes the rows of a pass, table by table and partition by partition. It looks only where rows are stored, so a call
 * that was interrupted goes on with what is left. The deletions stay pending: a query that began before the last
 * removal ended still has to hide the rows. The next look forgets them.
 *
 * @param proceed throws to end the pass before the next statement
 */
export async function eraseRows(
  session: TemporaryTables,
  pass: readonly DueErasure[],
  proceed: () => void,
): Promise<void> {
  const found = await findDeletedRows(session, pass);
  const parameters = parametersOf(pass);
  for (const [source, statement] of Object.entries(ERASE_STATEMENTS)) {
    const partitions = new Set(found.filter((rows) => rows.source === source).map(({ partition }) => partition));
    for (const partition of [...partitions].sort()) {
      proceed();
      await requireNoRemovals(session);
      const replaced = source === 'entities' ? await replaceMixedRows(session, pass) : {};
      const own = source === 'events-of-visitors' ? visitorsOf(pass) : parameters;
      await session.run(statement, { ...own, partition, ...replaced });
    }
  }
}

/**
 * Stores rows of the users who came back that can take the place of those with times from before the deletion. Until the
 * latter are removed, both are there, and queries compute the times. Returns up to which version they may be removed: a
 * writer of a version before this one may store another one meanwhile, which waits for the next round.
 */
async function replaceMixedRows(session: TemporaryTables, pass: readonly DueErasure[]) {
  const mixed = await session.read<MixedUser>(STATEMENTS['find-mixed-users'], parametersOf(pass));
  const newest = new Map(mixed.map((user) => [userKey(user), user.newest_version]));
  const returned = pass.filter((deletion) => newest.has(userKey(deletion)));
  if (returned.length > 0) await session.run(STATEMENTS['store-returned-users'], parametersOf(returned));
  return { replacedVersions: pass.map((deletion) => newest.get(userKey(deletion)) ?? deletion.deleted_version) };
}

async function findDeletedRows(session: TemporaryTables, pass: readonly DueErasure[]): Promise<DeletedRows[]> {
  const rows = await session.read<DeletedRows>(STATEMENTS['find-deleted-rows'], parametersOf(pass));
  return [...rows, ...(await findEventsOfVisitors(session, pass))];
}

async function findEventsOfVisitors(session: TemporaryTables, pass: readonly DueErasure[]): Promise<DeletedRows[]> {
  const parameters = visitorsOf(pass);
  if (parameters.visitors.length === 0) return [];
  type Found = Pick<DeletedRows, 'workspace_id' | 'partition'> & { readonly anonymous_id: string };
  const found = await session.read<Found>(STATEMENTS['find-events-of-visitors'], parameters);
  return found.map(({ workspace_id, partition, anonymous_id }) => {
    return { workspace_id, partition, user_id: visitorOf(anonymous_id), source: 'events-of-visitors' };
  });
}

function parametersOf(pass: readonly DueErasure[]) {
  return {
    workspaces: pass.map((deletion) => deletion.workspace_id),
    users: pass.map((deletion) => deletion.user_id),
    versions: pass.map((deletion) => deletion.deleted_version),
  };
}

/** The visitors among those of a pass, as events name them. */
function visitorsOf(pass: readonly DueErasure[]) {
  const deletions = pass.filter(({ user_id }) => isVisitor(user_id));
  const { workspaces, users, versions } = parametersOf(deletions);
  return { workspaces, visitors: users.map(anonymousIdOf), versions };
}

function userKey({ workspace_id, user_id }: Pick<DueErasure, 'workspace_id' | 'user_id'>): string {
  return JSON.stringify([workspace_id, user_id]);
}
