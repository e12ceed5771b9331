import { getHeapStatistics } from 'node:v8';
import { z } from 'zod';
import { connectionErrors } from './connection-errors.ts';
import { readSecretFiles, secret } from './secret-files.ts';

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
 * Parses a service's environment. A variable set to the empty string counts as unset, as in a compose file. Secrets may
 * come from files, and the files that variables name have to be usable.
 *
 * @throws {ConfigError} with the name of every variable that is wrong; never with its value, which may be a secret
 */
export function loadConfig<Schema extends z.ZodObject>(schema: Schema, env: NodeJS.ProcessEnv): z.output<Schema> {
  const names = Object.keys(schema.shape);
  const isGiven = ([name, value]: [string, string | undefined]) => value !== '' && names.includes(name);
  const { env: given, errors } = readSecretFiles(Object.fromEntries(Object.entries(env).filter(isGiven)), names);
  const result = schema.safeParse(given);
  if (!result.success) errors.push(...result.error.issues.map((issue) => errorOf(issue, given)));
  errors.push(...connectionErrors(given));
  if (result.success && errors.length === 0) return result.data;
  throw new ConfigError(errors);
}

function errorOf({ path, code, message }: z.core.$ZodIssue, given: NodeJS.ProcessEnv): string {
  // Only lists have more in their path.
  const name = String(path[0]);
  // A default may be what is wrong, too, beside other variables.
  const isMissing = !(name in given) && code !== 'custom';
  return `${name}: ${isMissing ? 'is required' : message}`;
}

/** {@link loadConfig} for a service's main: prints what is wrong on standard error, and exits with code 2. */
export function loadConfigOrExit<Schema extends z.ZodObject>(schema: Schema, env: NodeJS.ProcessEnv): z.output<Schema> {
  return orExit(() => loadConfig(schema, env));
}

/** Returns what `load` returns. Where it throws a {@link ConfigError}: prints it on standard error, and exits with code 2. */
export function orExit<Config>(load: () => Config): Config {
  try {
    return load();
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
    TLS_CERT_FILE: z.string().optional(),
    TLS_KEY_FILE: z.string().optional(),
  };
}

/** Extensions of a login, as RFC 7628 has them: `logicalCluster=lkc-1,identityPoolId=pool-2`. */
const extensions = list
  .pipe(z.array(z.string().regex(/^(?!auth=)[A-Za-z]+=[\x21-\x7e]+$/, 'must be pairs such as name=value')))
  .transform(
    (pairs) => Object.fromEntries(pairs.map((pair) => pair.split(/=(.*)/s).slice(0, 2))) as Record<string, string>,
  );

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
  KAFKA_SSL_CA_FILE: z.string().optional(),
  KAFKA_SSL_CERT_FILE: z.string().optional(),
  KAFKA_SSL_KEY_FILE: z.string().optional(),
  KAFKA_SASL_MECHANISM: z.enum(['plain', 'scram-sha-256', 'scram-sha-512', 'oauthbearer', 'aws-msk-iam']).optional(),
  KAFKA_SASL_USERNAME: z.string().optional(),
  ...secret('KAFKA_SASL_PASSWORD'),
  KAFKA_SASL_TOKEN_URL: z.url({ protocol: /^https?$/, error: 'must be an http:// or https:// address' }).optional(),
  KAFKA_SASL_SCOPE: z.string().optional(),
  KAFKA_SASL_EXTENSIONS: extensions.optional(),
  AWS_REGION: z.string().optional(),
};

/** By how much the clock of a service may differ from Kafka's, in milliseconds. */
export const clockEnv = { CLOCK_SKEW_MS_MAX: integer(100).default(2_000) };

/** The consumer group of the writers. */
export const groupEnv = { KAFKA_GROUP_ID: z.string().min(1).default('sluice-writer') };

/** Whether the client of ClickHouse takes an address. It throws on other parameters. */
function isUsable(address: string): boolean {
  const url = URL.parse(address);
  // What is no address is an error of its own.
  if (!url) return true;
  const isSetting = (name: string) => name.startsWith('clickhouse_setting_');
  if (url.hash !== '' || ![...url.searchParams.keys()].every(isSetting)) return false;
  try {
    decodeURIComponent(url.username + url.password);
    return true;
  } catch {
    return false;
  }
}

/** The address of ClickHouse's HTTP interface. */
export const clickHouseAddress = z
  .url({ protocol: /^https?$/, error: 'must be an http:// or https:// address' })
  .refine(isUsable, 'must have no parameters but clickhouse_setting_…, no #, and a login that is percent-encoded');

export const clickHouseDatabase = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,62}$/, 'must be a plain identifier');

/** Whether servers copy the rows of tables to one another, or share them behind one address, as in ClickHouse Cloud. */
const clickHouseReplication = z.enum(['none', 'replicated', 'shared'], 'must be none, replicated or shared');

/** How a service reaches ClickHouse. */
export const clickHouseEnv = {
  CLICKHOUSE_URL: clickHouseAddress,
  CLICKHOUSE_DATABASE: clickHouseDatabase.default('sluice'),
  CLICKHOUSE_REPLICATION: clickHouseReplication.optional(),
  CLICKHOUSE_USER: z.string().default('default'),
  ...secret('CLICKHOUSE_PASSWORD'),
  CLICKHOUSE_MIGRATE_USER: z.string().optional(),
  ...secret('CLICKHOUSE_MIGRATE_PASSWORD'),
  CLICKHOUSE_CA_FILE: z.string().optional(),
  CLICKHOUSE_CERT_FILE: z.string().optional(),
  CLICKHOUSE_KEY_FILE: z.string().optional(),
};

export type ServiceConfig = z.output<z.ZodObject<ReturnType<typeof serviceEnv>>>;
export type KafkaConfig = z.output<z.ZodObject<typeof kafkaEnv>>;
export type ClickHouseConfig = z.output<z.ZodObject<typeof clickHouseEnv>>;

/** Whether the tables are replicated ones, and servers copy their rows to one another. */
export function isReplicated({ CLICKHOUSE_REPLICATION }: Pick<ClickHouseConfig, 'CLICKHOUSE_REPLICATION'>): boolean {
  return CLICKHOUSE_REPLICATION === 'replicated';
}

/** Whether replicas share the rows of tables, and any statement may reach any of them, as in ClickHouse Cloud. */
export function isShared({ CLICKHOUSE_REPLICATION }: Pick<ClickHouseConfig, 'CLICKHOUSE_REPLICATION'>): boolean {
  return CLICKHOUSE_REPLICATION === 'shared';
}

/** A comma-separated list of values. */
export const commaSeparated = list;
