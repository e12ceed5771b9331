import { ClickHouseError } from '@clickhouse/client';
import { Fenced } from '../protocol/fenced.ts';

/** FUNCTION_THROW_IF_VALUE_IS_NON_ZERO: throwIf() in the insert has found that this writer may not store it. */
const THROW_IF = '395';

/** Returns {@link Fenced} for the error with which ClickHouse refuses an insert of this writer, else the error itself. */
export function fencedOr(error: unknown): unknown {
  if (!(error instanceof ClickHouseError && error.code === THROW_IF)) return error;
  // ClickHouse adds where it happened to the message of throwIf().
  return new Fenced(error.message.split(': ')[0], { cause: error });
}
