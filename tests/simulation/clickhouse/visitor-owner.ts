import type { ChangeRow } from '@sluice/shared/rows';
import { userKey } from './tables.ts';

/** A fact of whose a visitor is. */
export interface LinkFact {
  readonly workspace: string;
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

/** Returns the owner of a visitor, from those of its facts that count; empty: nobody. */
function ownerOf(facts: readonly LinkFact[]): string {
  const sorted = facts.toSorted((one, other) => one.version - other.version || (one.user < other.user ? -1 : 1));
  return (sorted.findLast(({ isSaid }) => isSaid) ?? sorted[0])?.user ?? '';
}

/**
 * Returns the visitors that were of a user at a deletion: by what was accepted up to it, without what earlier deletions of the
 * users hide.
 */
export function visitorsAt(
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
    !(earlier.get(userKey(workspace, fact.user)) ?? []).some(({ version }) => version >= fact.version);
  const byVisitor = Map.groupBy(facts.filter(counts), ({ visitor }) => visitor);
  return [...byVisitor].filter(([, ofVisitor]) => ownerOf(ofVisitor) === user).map(([visitor]) => visitor);
}
