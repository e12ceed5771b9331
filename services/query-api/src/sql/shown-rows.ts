import { DeletionsUnknown } from '../store/read-failures.ts';
import { VALUE_CHARACTERS_MAX } from '../store/request-limits.ts';
import type { Deletion } from '../store/tables.ts';
import type { Visibility } from '../store/visibility.ts';

/**
 * Returns the headers by which the row policies of `deploy/clickhouse/sql/accounts.xml` know which rows a statement may read.
 *
 * @throws {DeletionsUnknown} when there are more deletions of other servers than a header may have
 * @throws {Problem} `store_unavailable`, `overloaded` when it is not known what is deleted, or for how long events are kept
 */
export async function shownRows(
  workspace: string,
  { hiddenCondition, keptFrom, deletionsElsewhere }: Visibility,
): Promise<Readonly<Record<string, string>>> {
  const [hidden, keptFromMs] = await Promise.all([hiddenCondition(workspace), keptFrom(workspace)]);
  const elsewhere = deletionsElsewhere?.(workspace) ?? [];
  return {
    'x-sluice-workspace': workspace,
    'x-sluice-deletions': hidden ? 'some' : 'none',
    'x-sluice-kept-from': keptFromMs === undefined ? 'all' : String(keptFromMs),
    ...(elsewhere.length > 0 && { 'x-sluice-deleted-users': deletedUsers(elsewhere) }),
  };
}

/** @throws {DeletionsUnknown} when ClickHouse would refuse the header for its length: that is over in some seconds */
function deletedUsers(deletions: readonly Deletion[]): string {
  const users = deletions.map(({ user, version }) => [user, version]);
  const header = Buffer.from(JSON.stringify(users)).toString('base64');
  if (header.length <= VALUE_CHARACTERS_MAX) return header;
  throw new DeletionsUnknown(`the server lacks ${users.length} deletions that other servers have`);
}
