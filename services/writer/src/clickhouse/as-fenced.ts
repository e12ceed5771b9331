import { ClickHouseError } from '@clickhouse/client';
import { ErrorCodes } from '@sluice/shared/clickhouse/error-codes';
import { Fenced } from '../protocol/fenced.ts';

/** throwIf() in the insert has found that this writer may not store it. */
const THROW_IF = new ErrorCodes('FUNCTION_THROW_IF_VALUE_IS_NON_ZERO');

/** Returns {@link Fenced} for the error with which ClickHouse refuses an insert of this writer, else the error itself. */
export function asFenced(error: unknown): unknown {
  if (!(error instanceof ClickHouseError && THROW_IF.has(error.code))) return error;
  // ClickHouse adds where it happened to the message of throwIf().
  return new Fenced(error.message.split(': ')[0], { cause: error });
}
