import { clickHouseEnv, groupEnv, integer, isReplicated, isShared, kafkaEnv, serviceEnv } from '@sluice/shared/config';
import { coldAfterDays, retentionDays } from '@sluice/shared/config/retention-days';
import { serverEnv } from '@sluice/shared/servers/server-config';
import { nobodyEnv } from '@sluice/submissions/reading/nobody';
import { limitsEnv } from '@sluice/submissions/reading/submission-limits';
import { z } from 'zod';

/** The environment of the writer; docs/operate/configuration.md explains each variable. */
export const configSchema = z
  .object({
    ...serviceEnv(4002),
    ...kafkaEnv,
    ...clickHouseEnv,
    ...serverEnv,
    ...groupEnv,
    ...limitsEnv,
    ...nobodyEnv,
    KAFKA_SESSION_TIMEOUT_MS: integer(6_000, 300_000).default(10_000),
    BATCH_AGE_MS: integer(0, 60_000).default(900),
    BATCH_BYTES_MAX: integer(1_024).default(32 * 1_024 * 1_024),
    STATEMENT_TIMEOUT_MS: integer(1_000).default(30_000),
    ERASURE_INTERVAL_MS: integer(100).default(10_000),
    ERASURE_DELAY_MS: integer(0).default(60_000),
    ERASURE_GATHER_MS: integer(0).default(604_800_000),
    EVENTS_RETENTION_DAYS: retentionDays.optional(),
    EVENTS_COLD_AFTER_DAYS: coldAfterDays.optional(),
    RETENTION_INTERVAL_MS: integer(100).default(86_400_000),
    RETENTION_DELAY_MS: integer(0).default(86_400_000),
  })
  .refine((config) => config.ERASURE_DELAY_MS > config.STATEMENT_TIMEOUT_MS, {
    path: ['ERASURE_DELAY_MS'],
    message:
      'must be longer than STATEMENT_TIMEOUT_MS; otherwise rows of a user could be stored after the user was erased',
  })
  .refine((config) => !isReplicated(config) || config.EVENTS_COLD_AFTER_DAYS === undefined, {
    path: ['EVENTS_COLD_AFTER_DAYS'],
    message: 'cannot be used where tables are replicated: each replica has its months on volumes of its own',
  })
  .refine((config) => !isShared(config) || config.EVENTS_COLD_AFTER_DAYS === undefined, {
    path: ['EVENTS_COLD_AFTER_DAYS'],
    message: 'cannot be used where replicas share the rows: they have chosen where these are',
  });

export type WriterConfig = z.output<typeof configSchema>;
