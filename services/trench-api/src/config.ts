import { commaSeparated, integer, quarterOfHeap, serviceEnv } from '@sluice/shared/config';
import { secret } from '@sluice/shared/config/secret-files';
import { limitsEnv } from '@sluice/submissions/reading/submission-limits';
import { z } from 'zod';

const MEBIBYTE = 1_024 * 1_024;

const serviceUrl = z.url({ protocol: /^https?$/, error: 'must be an http:// or https:// address' });

/** The environment of trench-api; docs/operate/configuration.md explains each variable. */
export const configSchema = z
  .object({
    ...serviceEnv(4003),
    ...limitsEnv,
    INGEST_URL: serviceUrl,
    QUERY_URL: serviceUrl,
    ...secret('TRENCH_ADMIN_KEY'),
    API_KEYS_FILE: z.string().optional(),
    CORS_ORIGINS: commaSeparated.default([]),
    BODY_BYTES_MAX: integer(1_024, 64 * MEBIBYTE).default(4 * MEBIBYTE),
    RESPONSE_BYTES_MAX: integer(MEBIBYTE, 256 * MEBIBYTE).default(16 * MEBIBYTE),
    PENDING_BYTES_MAX: integer(MEBIBYTE).default(quarterOfHeap),
    SERVICE_TIMEOUT_MS: integer(100, 600_000).default(30_000),
  })
  .refine((config) => config.TRENCH_ADMIN_KEY === undefined || config.API_KEYS_FILE !== undefined, {
    path: ['API_KEYS_FILE'],
    message: 'is needed with TRENCH_ADMIN_KEY: workspaces and their keys are in that file',
  });

export type TrenchConfig = z.output<typeof configSchema>;
