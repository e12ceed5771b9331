/**
 * A generation of the writers' consumer group, as ClickHouse knows it. Kafka counts generations from 1 again after it
 * has forgotten a group (one without members for as long as Kafka keeps offsets). Each such restart of the count is a
 * new incarnation, so epochs only ever grow.
 */
export interface Epoch {
  readonly incarnation: number;
  readonly generation: number;
}

export type NextEpoch = { readonly outcome: 'owner'; readonly epoch: Epoch } | { readonly outcome: 'fenced' };

/**
 * Returns the epoch of a member that has joined `generation`, when `newest` is the newest recorded epoch.
 *
 * A generation below the recorded one usually means that the member is late, and fenced. But when Kafka counts the
 * member to the group now (`isMember`), the count has restarted, and the member begins a new incarnation.
 */
export function nextEpoch(newest: Epoch | undefined, generation: number, isMember: boolean): NextEpoch {
  if (!newest) return { outcome: 'owner', epoch: { incarnation: 1, generation } };
  const { incarnation } = newest;
  if (generation >= newest.generation) return { outcome: 'owner', epoch: { incarnation, generation } };
  if (!isMember) return { outcome: 'fenced' };
  return { outcome: 'owner', epoch: { incarnation: incarnation + 1, generation } };
}
