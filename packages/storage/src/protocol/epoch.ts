/**
 * A generation of the writers' consumer group, as ClickHouse knows it. Kafka counts generations from 1 again after it
 * has lost a group: because it had no members for as long as Kafka keeps offsets, or with its own record of groups. Each
 * such restart of the count is a new incarnation, so epochs only ever grow.
 */
export interface Epoch {
  readonly incarnation: number;
  readonly generation: number;
}

/** The epoch of a writer at the server at which it has taken over. */
export interface OwnEpoch extends Epoch {
  /** The name of the ClickHouse server: its UUID, host and port; empty: any. Another one refuses what is done in this epoch. */
  readonly server: string;
}

/** The newest recorded epoch. */
export interface RecordedEpoch extends Epoch {
  /** The members that led the generations which have recorded it; an older version recorded an empty id. */
  readonly leaderIds: readonly string[];
}

/** Returns the newest of epochs that were recorded at several servers, with the leaders of all that have recorded it. */
export function newestOf(epochs: readonly RecordedEpoch[]): RecordedEpoch | undefined {
  const [newest] = epochs.toSorted(
    (one, other) => other.incarnation - one.incarnation || other.generation - one.generation,
  );
  if (!newest) return undefined;
  const same = epochs.filter(
    ({ incarnation, generation }) => incarnation === newest.incarnation && generation === newest.generation,
  );
  return { ...newest, leaderIds: [...new Set(same.flatMap(({ leaderIds }) => leaderIds))] };
}

/** A generation that a member has joined. Kafka gives each member an id that it never gives again. */
export interface JoinedGeneration {
  readonly generation: number;
  readonly memberId: string;
  /** The member that leads the generation; the same for all its members. */
  readonly leaderId: string;
}

/**
 * Returns whether an epoch is recorded that is newer than a generation, or that another generation of the same number has
 * recorded: then the member is late, or Kafka has restarted the count.
 */
export function isPassed(newest: RecordedEpoch | undefined, joined: JoinedGeneration): boolean {
  if (!newest || joined.generation > newest.generation) return false;
  return joined.generation < newest.generation || hasOtherLeader(newest, joined);
}

/** Returns whether a generation with another leader has recorded an epoch. */
export function hasOtherLeader({ leaderIds }: RecordedEpoch, { leaderId }: JoinedGeneration): boolean {
  return leaderIds.some((other) => other !== '' && other !== leaderId);
}

/**
 * Returns the epoch of a member that has joined a generation, when `newest` is the newest recorded epoch; `undefined` when
 * the member is late, and fenced.
 *
 * @param isMember whether Kafka counts the member to the group now. Where the generation is passed all the same, the count
 * has restarted, and the member begins a new incarnation
 */
export function nextEpoch(
  newest: RecordedEpoch | undefined,
  joined: JoinedGeneration,
  isMember: boolean,
): Epoch | undefined {
  const { generation } = joined;
  if (!newest) return { incarnation: 1, generation };
  if (!isPassed(newest, joined)) return { incarnation: newest.incarnation, generation };
  return isMember ? { incarnation: newest.incarnation + 1, generation } : undefined;
}

/**
 * The assignment is over, a newer epoch owns its partitions, another server answers, or ClickHouse has lost what came before: nothing
 * more may be stored for it.
 */
export class Fenced extends Error {
  override readonly name = 'Fenced';
  /** kafkajs rejoins the group at once when an error has this type. Otherwise it would fetch the old assignment again. */
  readonly type = 'REBALANCE_IN_PROGRESS';
}
