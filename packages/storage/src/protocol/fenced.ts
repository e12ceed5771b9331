/**
 * The assignment is over, a newer epoch owns its partitions, or ClickHouse has lost what came before: nothing more may be
 * stored for it.
 */
export class Fenced extends Error {
  override readonly name = 'Fenced';
  /** kafkajs rejoins the group at once when an error has this type. Otherwise it would fetch the old assignment again. */
  readonly type = 'REBALANCE_IN_PROGRESS';
}
