import { Refused } from '@sluice/shared/config/command-line';
import { printable } from '@sluice/shared/text/printable';
import { GroupMismatch } from '@sluice/storage/clickhouse/claim-database';
import { DatabaseMismatch } from '@sluice/storage/clickhouse/own-database';
import { unreachable } from '../command/unreachable.ts';

/**
 * Returns why a command failed, for the operator.
 *
 * @param what it has connected to
 */
export function reasonOf(error: unknown, what = 'Kafka or ClickHouse'): string {
  const { message, type } = error as { readonly message: string; readonly type?: string };
  const isReason = [Refused, GroupMismatch, DatabaseMismatch].some((kind) => error instanceof kind);
  // An error of ClickHouse has a type: it was reached.
  const isKnown = isReason || type !== undefined;
  return isKnown ? message.split('\n').map(printable).join('\n') : unreachable(what, error);
}
