import { ClickHouseError } from '@clickhouse/client';

export const MINUTE_MS = 60_000;
export const DAY_MS = 24 * 60 * MINUTE_MS;

/** ClickHouse's error codes that the simulated server answers with. */
const CODES = {
  TABLE_ALREADY_EXISTS: '57',
  UNKNOWN_TABLE: '60',
  INCORRECT_DATA: '117',
  TIMEOUT_EXCEEDED: '159',
  MEMORY_LIMIT_EXCEEDED: '241',
  TABLE_IS_READ_ONLY: '242',
  ALL_CONNECTION_TRIES_FAILED: '279',
  TOO_FEW_LIVE_REPLICAS: '285',
  UNKNOWN_STATUS_OF_INSERT: '319',
  SESSION_NOT_FOUND: '372',
  SESSION_IS_LOCKED: '373',
  QUERY_WAS_CANCELLED: '394',
  FUNCTION_THROW_IF_VALUE_IS_NON_ZERO: '395',
  VIOLATED_CONSTRAINT: '469',
  KEEPER_EXCEPTION: '999',
} as const;

export type Refusal = keyof typeof CODES;

/** Returns the error with which ClickHouse refuses something. @param message default: the type */
export function refusalError(type: Refusal, message: string = type): ClickHouseError {
  return new ClickHouseError({ message, code: CODES[type], type });
}

/** @throws {ClickHouseError} always */
export function refuse(type: Refusal, message?: string): never {
  throw refusalError(type, message);
}
