import { commaSeparated, integer, kafkaEnv, serviceEnv } from '@sluice/shared/config';
import { z } from 'zod';

/** The environment of ingest-api; docs/configuration.md explains each variable. */
export const configSchema = z.object({
  ...serviceEnv(4000),
  ...kafkaEnv,
  API_KEYS_FILE: z.string(),
  RATE_LIMIT_DEFAULT: integer(1).optional(),
  CORS_ORIGINS: commaSeparated.default([]),
  BODY_BYTES_MAX: integer(1_024, 64 * 1_024 * 1_024).default(4 * 1_024 * 1_024),
  EVENT_BYTES_MAX: integer(1_024, 384 * 1_024).default(256 * 1_024),
  EVENTS_PER_SUBMISSION_MAX: integer(1).default(5_000),
  PENDING_BYTES_MAX: integer(1_024 * 1_024).default(128 * 1_024 * 1_024),
  PRODUCE_LINGER_MS: integer(0, 1_000).default(3),
  PRODUCE_TIMEOUT_MS: integer(100).default(10_000),
  KAFKA_COMPRESSION: z.enum(['none', 'gzip', 'zstd']).default('none'),
});

export type IngestConfig = z.output<typeof configSchema>;
