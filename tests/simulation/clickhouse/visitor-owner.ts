import type { ChangeRow } from '@sluice/shared/rows';
import { visitorOf } from '@sluice/shared/rows/deleted-person';
import { isMergeKey, mergedUserOf } from '@sluice/shared/rows/merged-user';
import { userKey } from './tables.ts';

/** A fact of whose a visitor is, or of whom a user became. */
export interface LinkFact {
  readonly workspace: string;
  /** Of a merged user, its key. */
  readonly visitor: string;
  /** Empty: somebody said that it is nobody's. */
  readonly user: string;
  readonly version: number;
  /** Whether somebody said it. */
  readonly isSaid: boolean;
}

/** The deletion of a user. */
export interface DeletionOfUser {
  readonly workspace: string;
  readonly user: string;
  readonly version: number;
}

/** Returns what a row says of a visitor; `undefined`: it is of something else. */
export function factOf({ kind, workspace_id, id, user_id = '', version, operation }: ChangeRow): LinkFact | undefined {
  if (kind !== 'visitor') return undefined;
  return { workspace: workspace_id, visitor: id, user: user_id, version, isSaid: operation === 'say' };
}

export function factKey({ workspace, visitor, user, version, isSaid }: LinkFact): string {
  return [workspace, visitor, user, version, isSaid].join('\0');
}

/** Returns the users whose deletions hide a fact. */
export function deletableUsersOf({ visitor, user }: Pick<LinkFact, 'visitor' | 'user'>): readonly string[] {
  return isMergeKey(visitor) ? [user, mergedUserOf(visitor)] : [user];
}

/** Returns the owner of a visitor, from those of its facts that count; empty: nobody. */
function ownerOf(facts: readonly LinkFact[]): string {
  const sorted = facts.toSorted((one, other) => one.version - other.version || (one.user < other.user ? -1 : 1));
  return (sorted.findLast(({ isSaid }) => isSaid) ?? sorted[0])?.user ?? '';
}

/**
 * Returns who is deleted with a user, as deletions name them: the visitors that were of the user at the deletion, and who was merged into it, by
 * what was accepted up to it, without what earlier deletions of the users hide.
 */
export function deletedWith(
  { workspace, user, version: until }: DeletionOfUser,
  facts: readonly LinkFact[],
  deletions: readonly DeletionOfUser[],
): string[] {
  const earlier = Map.groupBy(
    deletions.filter((deletion) => deletion.version < until),
    (deletion) => userKey(deletion.workspace, deletion.user),
  );
  const counts = (fact: LinkFact) =>
    fact.workspace === workspace &&
    fact.version <= until &&
    (fact.isSaid || !isMergeKey(fact.visitor)) &&
    !deletableUsersOf(fact)
      .flatMap((one) => earlier.get(userKey(workspace, one)) ?? [])
      .some(({ version }) => version >= fact.version);
  const byVisitor = Map.groupBy(facts.filter(counts), ({ visitor }) => visitor);
  return [...byVisitor]
    .filter(([, ofVisitor]) => ownerOf(ofVisitor) === user)
    .map(([visitor]) => (isMergeKey(visitor) ? mergedUserOf(visitor) : visitorOf(visitor)));
}
