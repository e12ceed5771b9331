/**
 * A generation of the writers' consumer group. Kafka counts generations from 1 again when a group has been forgotten
 * (without members for as long as offsets are kept), which begins a new incarnation.
 */
export interface Epoch {
  readonly incarnation: number;
  readonly generation: number;
}

export type NextEpoch = { readonly outcome: 'owner'; readonly epoch: Epoch } | { readonly outcome: 'superseded' };

/**
 * The epoch of a member that has joined `generation`, when `newest` is the newest that was recorded. An older generation
 * than the recorded one means that the member is late, unless Kafka says that it belongs to the group now: then the
 * count has begun anew.
 */
export function nextEpoch(newest: Epoch | undefined, generation: number, isMember: boolean): NextEpoch {
  if (!newest) return { outcome: 'owner', epoch: { incarnation: 1, generation } };
  const { incarnation } = newest;
  if (generation >= newest.generation) return { outcome: 'owner', epoch: { incarnation, generation } };
  if (!isMember) return { outcome: 'superseded' };
  return { outcome: 'owner', epoch: { incarnation: incarnation + 1, generation } };
}
