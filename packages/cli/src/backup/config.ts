import { clickHouseEnv, kafkaEnv } from '@sluice/shared/config';
import { groupEnv } from '@sluice/writer/config';
import { z } from 'zod';

/** The environment of the commands backup and restore; docs/operate/configuration.md explains each variable. */
export const backupConfig = z
  .object({
    ...kafkaEnv,
    ...clickHouseEnv,
    ...groupEnv,
    CLICKHOUSE_MIGRATE_USER: z.string().optional(),
    CLICKHOUSE_MIGRATE_PASSWORD: z.string().default(''),
    BACKUP_S3_ACCESS_KEY_ID: z.string().optional(),
    BACKUP_S3_SECRET_ACCESS_KEY: z.string().optional(),
  })
  .refine(
    (config) => (config.BACKUP_S3_ACCESS_KEY_ID === undefined) === (config.BACKUP_S3_SECRET_ACCESS_KEY === undefined),
    {
      path: ['BACKUP_S3_SECRET_ACCESS_KEY'],
      message:
        'must be set together with BACKUP_S3_ACCESS_KEY_ID; without both, ClickHouse uses credentials of its own',
    },
  )
  // BACKUP and RESTORE need rights that a writer does not have.
  .transform((config) =>
    config.CLICKHOUSE_MIGRATE_USER === undefined
      ? config
      : {
          ...config,
          CLICKHOUSE_USER: config.CLICKHOUSE_MIGRATE_USER,
          CLICKHOUSE_PASSWORD: config.CLICKHOUSE_MIGRATE_PASSWORD,
        },
  );

export type BackupConfig = z.output<typeof backupConfig>;
