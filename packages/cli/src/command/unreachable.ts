import { connectionHint, withHint } from '@sluice/shared/base/connection-hints';
import { Refused } from '@sluice/shared/config/command-line';
import { printable } from '@sluice/shared/text/printable';
import { GroupMismatch } from '@sluice/storage/clickhouse/claim-database';
import { DatabaseMismatch } from '@sluice/storage/clickhouse/own-database';

/**
 * Returns a sentence that says what cannot be reached, why, and what to check.
 *
 * @param what the subject of the sentence, in the plural or two of them
 * @param config names ClickHouse's address; undefined where the error names one of several servers
 */
export function unreachable(what: string, error: unknown, config?: { readonly CLICKHOUSE_URL: string }): string {
  const { message, code } = error as NodeJS.ErrnoException;
  const why = printable(withHint(message || code || '', connectionHint(error)));
  const isOfKafka = (error as Error).name.startsWith('KafkaJS');
  // The address itself may have a password in it.
  const host = isOfKafka || !config ? undefined : new URL(config.CLICKHOUSE_URL).host;
  return `${what} cannot be reached (${why}).${host === undefined ? '' : ` Is Sluice running at ${host}?`}`;
}

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
