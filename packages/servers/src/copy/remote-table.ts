import { loginOf } from '@sluice/shared/clickhouse/connection';
import { migrateAccount } from '@sluice/shared/clickhouse/migrate';
import { Refused } from '@sluice/shared/config/command-line';
import type { ConfiguredServer } from '../state/connected-server.ts';

/** Whether a text holds what the native protocol does not take in a login. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it refuses
const CONTROL_CHARACTER = /[\u0000-\u001f\u007f]/;

/**
 * Returns a text as a literal of ClickHouse's SQL. It is for the arguments of `remote` alone, which cannot be parameters:
 * ClickHouse hides a password in its logs and lists of queries only where it is a literal.
 */
export function literal(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}

/** The tables of another server, as a FROM names them. What it returns holds a password: print and log none of it. */
export type RemoteTables = (table: string) => string;

/**
 * Returns how a server reads the tables of another one over the native protocol, with the account for migrations.
 *
 * @param native host and port; by default those of the file
 * @throws {Refused} when the account cannot log in over the native protocol
 */
export function remoteTables({ server, config }: ConfiguredServer, native = server.native): RemoteTables {
  const account = migrateAccount(config);
  if (account.CLICKHOUSE_CERT_FILE !== undefined) {
    throw new Refused(
      'ClickHouse cannot read another server with a client certificate. Name an account with a password for this command: ' +
        'CLICKHOUSE_MIGRATE_USER and CLICKHOUSE_MIGRATE_PASSWORD, without CLICKHOUSE_CERT_FILE.',
    );
  }
  const { user, password } = loginOf(account);
  if (CONTROL_CHARACTER.test(user + password)) {
    throw new Refused(
      "ClickHouse's native protocol takes no control characters in a user or a password, such as a line feed.",
    );
  }
  const name = server.nativeTls ? 'remoteSecure' : 'remote';
  return (table) => `${name}(${[native, server.database, table, user, password].map(literal).join(', ')})`;
}
