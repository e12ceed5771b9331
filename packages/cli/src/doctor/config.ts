import {
  clickHouseAddress,
  clickHouseDatabase,
  clickHouseEnv,
  clockEnv,
  commaSeparated,
  groupEnv,
  integer,
  kafkaEnv,
} from '@sluice/shared/config';
import { coldAfterDays } from '@sluice/shared/config/retention-days';
import { secret } from '@sluice/shared/config/secret-files';
import { serverEnv } from '@sluice/shared/servers/server-config';
import { z } from 'zod';

/** The services in whose place the command tries things. */
export const SERVICES = ['ingest-api', 'writer', 'query-api'] as const;

export type ServiceName = (typeof SERVICES)[number];

const addresses = commaSeparated.pipe(
  z.array(
    z
      .url({ protocol: /^https?$/, error: 'must be http:// or https:// addresses' })
      .refine((text) => new URL(text).username === '', 'must have no login'),
  ),
);

/** What the command reads: the variables of the services that it stands for, and where they are. */
export const doctorConfig = z.object({
  ...kafkaEnv,
  KAFKA_BROKERS: kafkaEnv.KAFKA_BROKERS.optional(),
  ...clickHouseEnv,
  CLICKHOUSE_URL: clickHouseEnv.CLICKHOUSE_URL.optional(),
  ...serverEnv,
  ...groupEnv,
  ...clockEnv,
  EVENTS_COLD_AFTER_DAYS: coldAfterDays.optional(),
  API_KEYS_FILE: z.string().optional(),
  QUERY_MEMORY_BYTES_MAX: integer(1).optional(),
  CLICKHOUSE_SQL_USER: z.string().min(1).optional(),
  ...secret('CLICKHOUSE_SQL_PASSWORD'),
  CLICKHOUSE_WEBHOOKS_USER: z.string().min(1).optional(),
  ...secret('CLICKHOUSE_WEBHOOKS_PASSWORD'),
  CLICKHOUSE_WEBHOOKS_URL: clickHouseAddress.optional(),
  CLICKHOUSE_WEBHOOKS_DATABASE: clickHouseDatabase.optional(),
  INGEST_URL: addresses.optional(),
  QUERY_URL: addresses.optional(),
  WRITER_URL: addresses.optional(),
  ...secret('SLUICE_API_KEY'),
});

export type DoctorConfig = z.output<typeof doctorConfig>;

/** Returns what no output may show. */
export function secretsOf(config: DoctorConfig): readonly string[] {
  const urls = [config.CLICKHOUSE_URL, config.CLICKHOUSE_WEBHOOKS_URL];
  return [
    config.KAFKA_SASL_PASSWORD,
    config.CLICKHOUSE_PASSWORD,
    config.CLICKHOUSE_MIGRATE_PASSWORD,
    config.CLICKHOUSE_SQL_PASSWORD,
    config.CLICKHOUSE_WEBHOOKS_PASSWORD,
    config.SLUICE_API_KEY,
    ...urls.map((url) => url && new URL(url).password),
  ].filter((text) => text !== undefined);
}
