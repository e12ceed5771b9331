import { clickHouseEnv, groupEnv, kafkaEnv } from '@sluice/shared/config';
import { secret } from '@sluice/shared/config/secret-files';
import { serverEnv } from '@sluice/shared/servers/server-config';
import { z } from 'zod';

/** The environment of the commands backup and restore; docs/operate/backup.md explains those of its own. */
export const backupConfig = z
  .object({
    ...kafkaEnv,
    ...clickHouseEnv,
    ...serverEnv,
    ...groupEnv,
    BACKUP_S3_ACCESS_KEY_ID: z.string().optional(),
    ...secret('BACKUP_S3_SECRET_ACCESS_KEY'),
  })
  .refine(
    (config) => (config.BACKUP_S3_ACCESS_KEY_ID === undefined) === (config.BACKUP_S3_SECRET_ACCESS_KEY === undefined),
    {
      path: ['BACKUP_S3_SECRET_ACCESS_KEY'],
      message:
        'must be set together with BACKUP_S3_ACCESS_KEY_ID; without both, ClickHouse uses credentials of its own',
    },
  );

/** What to do where replicas share the rows. */
export const BACKUPS_OF_CLOUD =
  'Use the backups of ClickHouse Cloud: docs/operate/existing-cluster.md#clickhouse-cloud.';

export type BackupConfig = z.output<typeof backupConfig>;
