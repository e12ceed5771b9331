import type { Row, Sql, Tables } from '../../store/store.ts';
import { groupsOf } from '../entities/candidates.ts';
import type { PropertyFilter } from '../filters/property-filter.ts';
import { type Owner, ownersAmong } from './owners.ts';

/** Runs a query, and returns its rows. */
type Find = (statement: (tables: Tables) => Sql) => Promise<readonly Row[]>;

/** Returns those of some owners whose property matches a filter in its positive form, as it is now. */
export async function matchingOwners(
  find: Find,
  owner: Owner,
  filter: PropertyFilter,
  ids: readonly string[],
): Promise<ReadonlySet<string>> {
  const { likely, matching } = ownersAmong(owner, filter);
  const found = new Set<string>();
  for (const some of groupsOf(ids)) {
    let open = some;
    if (likely) {
      const decided = (await find((tables) => likely(tables, some))) as readonly (readonly [string, number])[];
      for (const [id] of decided.filter(([, matches]) => matches)) found.add(id);
      // An array that has the value among others, for example.
      open = decided.filter(([, matches]) => !matches).map(([id]) => id);
    }
    if (open.length === 0) continue;
    for (const [id] of await find((tables) => matching(tables, open))) found.add(id as string);
  }
  return found;
}
