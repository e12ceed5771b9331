import { getHeapStatistics } from 'node:v8';
import { z } from 'zod';

/** The environment is not valid for a service. `errors` names every variable that is wrong. */
export class ConfigError extends Error {
  readonly errors: readonly string[];

  constructor(errors: readonly string[]) {
    super(`invalid configuration:\n${errors.map((error) => `  ${error}`).join('\n')}`);
    this.name = 'ConfigError';
    this.errors = errors;
  }
}

/**
 * Parses a service's environment. A variable set to the empty string counts as unset, as in a compose file.
 *
 * @throws {ConfigError} with the name of every variable that is wrong; never with its value, which may be a secret
 */
export function loadConfig<Schema extends z.ZodType>(schema: Schema, env: NodeJS.ProcessEnv): z.output<Schema> {
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ''));
  const result = schema.safeParse(given);
  if (result.success) return result.data;
  throw new ConfigError(
    result.error.issues.map(({ path, code, message }) => {
      // Only lists have more in their path.
      const name = String(path[0]);
      // A default may be what is wrong, too, beside other variables.
      const isMissing = !(name in given) && code !== 'custom';
      return `${name}: ${isMissing ? 'is required' : message}`;
    }),
  );
}

/** {@link loadConfig} for a service's main: prints what is wrong on standard error, and exits with code 2. */
export function loadConfigOrExit<Schema extends z.ZodType>(schema: Schema, env: NodeJS.ProcessEnv): z.output<Schema> {
  try {
    return loadConfig(schema, env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    console.error(error.message);
    process.exit(2);
  }
}

/** An integer from `min` to `max`, given as text. */
export function integer(min: number, max = Number.MAX_SAFE_INTEGER): z.ZodType<number> {
  return z.coerce
    .number({ error: 'must be a number' })
    .int('must be a whole number')
    .min(min, `must be at least ${min}`)
    .max(max, `must be at most ${max}`);
}

/** The default of what requests under way may reserve: so they never exhaust the heap. In bytes. */
export function quarterOfHeap(): number {
  return Math.floor(getHeapStatistics().heap_size_limit / 4);
}

const list = z
  .string()
  .transform((text) => text.split(',').map((item) => item.trim()))
  .pipe(z.array(z.string().min(1, 'must be a list separated by commas')).min(1));

const hostNames = list.pipe(z.array(z.string().regex(/^[^\s:/[\]]+$/, 'must be names of hosts without ports')));

/** The variables of every service. The schema of a service is `z.object({ ...serviceEnv(4000), … })`. */
export function serviceEnv(defaultPort: number) {
  return {
    HOST: z.string().default('127.0.0.1'),
    PORT: integer(0, 65_535).default(defaultPort),
    LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal']).default('info'),
    SHUTDOWN_TIMEOUT_MS: integer(0).default(20_000),
    EXIT_ON_STDIN_END: z.stringbool().default(false),
    ALLOWED_HOSTS: hostNames.optional(),
  };
}

/** How a service reaches Kafka. */
export const kafkaEnv = {
  KAFKA_BROKERS: list,
  KAFKA_TOPIC_PREFIX: z
    .string()
    .regex(/^[A-Za-z0-9._-]{0,100}$/, 'must hold letters, digits, dots, underscores and hyphens only')
    .default('sluice.'),
  KAFKA_PARTITIONS: integer(1, 1_000).default(48),
  KAFKA_REPLICATION_FACTOR: integer(1, 32_767).optional(),
  KAFKA_SSL: z.stringbool().default(false),
  KAFKA_SASL_MECHANISM: z.enum(['plain', 'scram-sha-256', 'scram-sha-512']).optional(),
  KAFKA_SASL_USERNAME: z.string().optional(),
  KAFKA_SASL_PASSWORD: z.string().optional(),
};

/** How a service reaches ClickHouse. */
export const clickHouseEnv = {
  CLICKHOUSE_URL: z.url({ protocol: /^https?$/, error: 'must be an http:// or https:// address' }),
  CLICKHOUSE_DATABASE: z
    .string()
    .regex(/^[A-Za-z_][A-Za-z0-9_]{0,62}$/, 'must be a plain identifier')
    .default('sluice'),
  CLICKHOUSE_USER: z.string().default('default'),
  CLICKHOUSE_PASSWORD: z.string().default(''),
  CLICKHOUSE_MIGRATE_USER: z.string().optional(),
  CLICKHOUSE_MIGRATE_PASSWORD: z.string().optional(),
};

export type ServiceConfig = z.output<z.ZodObject<ReturnType<typeof serviceEnv>>>;
export type KafkaConfig = z.output<z.ZodObject<typeof kafkaEnv>>;
export type ClickHouseConfig = z.output<z.ZodObject<typeof clickHouseEnv>>;

/** A comma-separated list of values. */
export const commaSeparated = list;
