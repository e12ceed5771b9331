import { connectionHint, withHint } from '@sluice/shared/base/connection-hints';
import { printable } from '@sluice/shared/text/printable';

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
