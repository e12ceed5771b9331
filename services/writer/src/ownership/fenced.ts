import { ClickHouseError } from '@clickhouse/client';

/** FUNCTION_THROW_IF_VALUE_IS_NON_ZERO: throwIf() in the insert has found a newer epoch. */
const THROW_IF = '395';

/** The assignment is over, or a newer epoch owns its partitions: nothing more may be stored for it. */
export class Fenced extends Error {
  override readonly name = 'Fenced';
  /** kafkajs rejoins the group at once when an error has this type. Otherwise it would fetch the old assignment again. */
  readonly type = 'REBALANCE_IN_PROGRESS';
}

/** Returns {@link Fenced} for the error with which ClickHouse refuses an insert of an older epoch, else the error itself. */
export function fencedOr(error: unknown): unknown {
  if (!(error instanceof ClickHouseError && error.code === THROW_IF)) return error;
  return new Fenced('a newer epoch owns the partitions', { cause: error });
}
