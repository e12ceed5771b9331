import { createLogger } from '@sluice/shared/base/log';
import { type ClickHouseClient, createClickHouse } from '@sluice/shared/clickhouse/client';
import { migrateAccount } from '@sluice/shared/clickhouse/migrate';
import { ArgumentsError, Refused } from '@sluice/shared/config/command-line';
import { createKafka } from '@sluice/shared/kafka/client';
import { printable } from '@sluice/shared/text/printable';
import { GroupMismatch } from '@sluice/storage/clickhouse/claim-database';
import type { Kafka } from 'kafkajs';
import { unreachable } from '../command/unreachable.ts';
import type { BackupConfig } from './config.ts';
import { OperationFailed } from './operation.ts';
import { HalfReplaced } from './replicas.ts';

/** How long a statement may take: it may read or drop all data. */
const REQUEST_TIMEOUT_MS = 3_600_000;

/** Creates a client for a database, of the account for migrations: a writer's may not make backups. */
export function clientOf(config: BackupConfig, application: string, database: string): ClickHouseClient {
  return createClickHouse(
    { ...migrateAccount(config), CLICKHOUSE_DATABASE: database },
    { application, requestTimeoutMs: REQUEST_TIMEOUT_MS, connectionsMax: 2 },
  );
}

export function kafkaOf(config: BackupConfig, application: string): Kafka {
  return createKafka(config, application, createLogger(application, 'error'));
}

/** What to configure, by the name of ClickHouse's error and its text. */
const ADVICE: readonly (readonly [type: string, text: RegExp, advice: string])[] = [
  [
    'BAD_ARGUMENTS',
    /is not allowed for backups/,
    'Choose a directory on the machine of ClickHouse that its configuration allows (backups.allowed_path)',
  ],
  [
    'INVALID_CONFIG_PARAMETER',
    /allowed_path/,
    "ClickHouse's configuration must allow the directory (backups.allowed_path)",
  ],
  ['BACKUP_ALREADY_EXISTS', /./, 'A backup is never overwritten: choose another place, or remove what is there'],
  ['ACCESS_DENIED', /./, 'Give the account the rights that the page lists'],
  ['S3_ERROR', /./, 'Check the address, BACKUP_S3_ACCESS_KEY_ID and BACKUP_S3_SECRET_ACCESS_KEY'],
];

/**
 * Says on standard error why a command failed.
 *
 * @returns the exit code
 * @throws {ArgumentsError} as it is
 */
export function reportFailure(error: unknown, failed: string, config: BackupConfig): number {
  if (error instanceof ArgumentsError) throw error;
  const { message, code, type = '' } = error as NodeJS.ErrnoException & { type?: string };
  const reason = printable(message || code || '');
  if (error instanceof Refused || error instanceof GroupMismatch) console.error(`${failed}: ${reason}`);
  else if (error instanceof OperationFailed || error instanceof HalfReplaced || type !== '') {
    const advice = ADVICE.find(([name, text]) => name === type && text.test(message))?.[2];
    console.error(`${failed}: ${reason}${advice ? `\n${advice}: docs/operate/backup.md` : ''}`);
  } else {
    console.error(`${failed}: ${unreachable('Kafka or ClickHouse', error, config)}`);
  }
  return 1;
}
