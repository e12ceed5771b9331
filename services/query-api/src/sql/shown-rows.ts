import type { Visibility } from '../clickhouse/visibility.ts';

/**
 * Returns the headers by which the row policies of `deploy/clickhouse/sql/accounts.xml` know which rows a statement may read.
 *
 * @throws {Problem} `store_unavailable`, `overloaded` when it is not known what is deleted, or for how long events are kept
 */
export async function shownRows(
  workspace: string,
  { hiddenCondition, keptFrom, deletionsElsewhere }: Visibility,
): Promise<Readonly<Record<string, string>>> {
  const [hidden, keptFromMs] = await Promise.all([hiddenCondition(workspace), keptFrom(workspace)]);
  const elsewhere = deletionsElsewhere?.(workspace) ?? [];
  const users = elsewhere.map(({ user, version }) => [user, version]);
  return {
    'x-sluice-workspace': workspace,
    'x-sluice-deletions': hidden ? 'some' : 'none',
    'x-sluice-kept-from': keptFromMs === undefined ? 'all' : String(keptFromMs),
    ...(users.length > 0 && { 'x-sluice-deleted-users': Buffer.from(JSON.stringify(users)).toString('base64') }),
  };
}
