import { isIPv4, isIPv6 } from 'node:net';
import { clockEnv, commaSeparated, integer, kafkaEnv, quarterOfHeap, serviceEnv } from '@sluice/shared/config';
import { nobodyEnv } from '@sluice/submissions/reading/nobody';
import { limitsEnv } from '@sluice/submissions/reading/submission-limits';
import { z } from 'zod';

const MEBIBYTE = 1_024 * 1_024;

/** One key may hold half of the memory budget. A body, compressed and not, and its rows must fit into that half. */
const BODIES_IN_BUDGET_MIN = 12;

/** The rows of a submission may have this many times the bytes of the largest body. */
const ROWS_PER_BODY_MAX = 4;

/** Addresses that `TRUSTED_PROXIES` may name instead of listing them. */
const NAMED_NETWORKS: readonly string[] = ['loopback', 'linklocal', 'uniquelocal'];

/** An address, an address with the length of its network (`10.0.0.0/8`), or the name of a range. */
export const proxyNetwork = z
  .string()
  .refine(isProxyNetwork, `must hold addresses, networks such as 10.0.0.0/8, or ${NAMED_NETWORKS.join(', ')}`);

function isProxyNetwork(text: string): boolean {
  if (NAMED_NETWORKS.includes(text)) return true;
  const [address = '', length, ...rest] = text.split('/');
  const bits = isIPv4(address) ? 32 : isIPv6(address) ? 128 : 0;
  if (bits === 0 || rest.length > 0) return false;
  return length === undefined || (/^[1-9]\d{0,2}$/.test(length) && Number(length) <= bits);
}

/** The environment of ingest-api; docs/operate/configuration.md explains each variable. */
export const configSchema = z
  .object({
    ...serviceEnv(4000),
    ...kafkaEnv,
    INGEST_WORKERS: integer(1, 256).default(1),
    API_KEYS_FILE: z.string(),
    RATE_LIMIT_DEFAULT: integer(1).optional(),
    CORS_ORIGINS: commaSeparated.default([]),
    TRUSTED_PROXIES: commaSeparated.pipe(z.array(proxyNetwork)).default([]),
    BODY_BYTES_MAX: integer(1_024, 64 * MEBIBYTE).default(4 * MEBIBYTE),
    EVENTS_PER_SUBMISSION_MAX: integer(1).default(5_000),
    ...limitsEnv,
    ...nobodyEnv,
    PENDING_BYTES_MAX: integer(MEBIBYTE).default(quarterOfHeap),
    PRODUCE_LINGER_MS: integer(0, 1_000).default(0),
    PRODUCE_TIMEOUT_MS: integer(100).default(10_000),
    KAFKA_COMPRESSION: z.enum(['none', 'gzip', 'zstd']).default('none'),
    ...clockEnv,
  })
  .superRefine(({ PENDING_BYTES_MAX, BODY_BYTES_MAX, INGEST_WORKERS }, context) => {
    const bytesMin = BODIES_IN_BUDGET_MIN * BODY_BYTES_MAX * INGEST_WORKERS;
    if (PENDING_BYTES_MAX >= bytesMin) return;
    const workers = INGEST_WORKERS > 1 ? ` for each of the ${INGEST_WORKERS} INGEST_WORKERS` : '';
    const message =
      `must be at least ${bytesMin}: ${BODIES_IN_BUDGET_MIN} times BODY_BYTES_MAX${workers}; ` +
      "its default is a quarter of Node's heap limit";
    context.addIssue({ code: 'custom', path: ['PENDING_BYTES_MAX'], message });
  });

export type IngestConfig = z.output<typeof configSchema>;

/** The most that the rows of one submission may be, in bytes. */
export function rowBytesMax({ BODY_BYTES_MAX }: Pick<IngestConfig, 'BODY_BYTES_MAX'>): number {
  return ROWS_PER_BODY_MAX * BODY_BYTES_MAX;
}
