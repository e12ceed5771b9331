import type { Row, Sql, Tables } from '../../store/store.ts';
import { groupsOf } from '../entities/candidates.ts';
import { type PropertyFilter, toPositive } from '../filters/property-filter.ts';
import { FEW, fewCandidates, type Owner, ownersAmong } from './owners.ts';

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

/**
 * Returns the owners whose property matches a filter, as it is now, where the index of values finds them and they are so few that one
 * query can name them; otherwise `undefined`.
 */
export async function fewMatchingOwners(
  find: Find,
  owner: Owner,
  requested: PropertyFilter,
): Promise<readonly string[] | undefined> {
  const { filter, negated } = toPositive(requested);
  const candidates = negated ? undefined : fewCandidates(owner, filter);
  if (!candidates) return undefined;
  const found = await find(candidates);
  const ids = [...new Set(found.map(([id]) => id as string))];
  if (found.length > FEW || [...groupsOf(ids)].length > 1) return undefined;
  return [...(await matchingOwners(find, owner, filter, ids))];
}
