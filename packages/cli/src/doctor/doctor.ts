import { join } from 'node:path';
import { atMost } from '@sluice/shared/base/retry';
import { type ClickHouseConfig, ConfigError, type KafkaConfig } from '@sluice/shared/config';
import { ArgumentsError, parseArguments } from '@sluice/shared/config/command-line';
import { describeRange } from '@sluice/shared/servers/partition-range';
import { areReplicas, type ServerConfig } from '@sluice/shared/servers/server-config';
import type { Command, Environment } from '../command/command.ts';
import { dataFolder, readSecret, withLocalSystem } from '../command/local-system.ts';
import { interruption } from '../command/terminal.ts';
import { loadAllServers } from '../servers/chosen-server.ts';
import { type Check, type Result, runChecks } from './check.ts';
import { ClickHouseChecks } from './clickhouse-checks.ts';
import { Clocks } from './clocks.ts';
import { type DoctorConfig, doctorConfig, SERVICES, type ServiceName, secretsOf } from './config.ts';
import { KafkaChecks } from './kafka-checks.ts';
import { serviceChecks } from './service-checks.ts';
import { Shards } from './shards.ts';

/** How long the connections to Kafka may take to close, in milliseconds. */
const CLOSE_MS_MAX = 2_000;

/** Tries everything that Sluice relies on in Kafka, ClickHouse and the services, with the environment of a service. */
export const doctorCommand: Command = {
  help,
  async run(args, { env }) {
    const { services, json } = parse(args, env);
    const print = json ? () => undefined : (result: Result) => console.log(lineOf(result));
    const signal = interruption();
    const results = await runDoctor(services, await environmentOf(env), signal, print);
    const wrongs = results.filter(({ state }) => state === 'wrong').length;
    if (json) console.log(JSON.stringify({ wrong: wrongs, checks: results }, undefined, 2));
    else if (signal.aborted) console.log('Interrupted.');
    else
      console.log(wrongs === 0 ? 'Nothing is wrong.' : `${wrongs} of ${results.length} checks found something wrong.`);
    if (signal.aborted) return 130;
    return wrongs === 0 ? 0 : 1;
  },
};

function help(name: string): string {
  return `Usage: ${name} [options] [SERVICE ...]

Tries everything that Sluice relies on in the given Kafka and ClickHouse, with the accounts of the environment, and says in
a line each what it is, what it found and, where something is wrong, why it matters and what to do: docs/operate/doctor.md.
It changes nothing that is yours, and removes what it makes.

  SERVICE    in whose place: ${SERVICES.join(', ')}. Default: that of the image, else ingest-api and writer
  --json     prints a JSON document instead, for programs
  --help     this text

With API_KEYS_FILE it reads the keys file; with INGEST_URL, QUERY_URL and WRITER_URL it asks whether the services are ready;
with SLUICE_API_KEY, of the scopes ingest, query and delete, it sends an event, waits until it is served, and deletes its user.

Exit codes: 0 nothing is wrong, 1 something is wrong, 2 wrong arguments, 130 interrupted.`;
}

interface DoctorArguments {
  readonly services: readonly ServiceName[];
  readonly json: boolean;
}

/** @throws {ArgumentsError} */
function parse(args: readonly string[], env: Environment): DoctorArguments {
  const options = { json: { type: 'boolean', default: false } } as const;
  const { values, positionals } = parseArguments({ args: [...args], options, allowPositionals: true });
  const unknown = positionals.filter((name) => !SERVICES.some((known) => known === name));
  if (unknown.length > 0)
    throw new ArgumentsError(`Unknown service "${unknown.join('", "')}"; use some of ${SERVICES.join(', ')}.`);
  const ofImage = env['SERVICE'] ? [env['SERVICE']] : ['ingest-api', 'writer'];
  const chosen = positionals.length > 0 ? positionals : ofImage;
  return { services: SERVICES.filter((name) => chosen.includes(name)), json: values.json };
}

/** Returns the environment; in a checkout, what it does not say is that of the system that npm start runs. */
async function environmentOf(env: Environment): Promise<Environment> {
  if (env['SERVICE'] || env['CLICKHOUSE_URL'] || env['CLICKHOUSE_SERVERS_FILE']) return env;
  const url = (name: string, port: number) => ({ [`${name}_URL`]: `http://127.0.0.1:${env[`${name}_PORT`] || port}` });
  return {
    ...{ ...url('INGEST', 4_000), ...url('QUERY', 4_001), ...url('WRITER', 4_002) },
    API_KEYS_FILE: join(dataFolder(env), 'keys.json'),
    SLUICE_API_KEY: await readSecret(env, 'dev-key'),
    ...(await withLocalSystem(env)),
  };
}

/**
 * Runs all checks in the place of services, and returns what they found.
 *
 * @throws {ConfigError} when the environment is wrong
 */
export async function runDoctor(
  services: readonly ServiceName[],
  env: Environment,
  signal: AbortSignal,
  onResult: (result: Result) => void,
): Promise<readonly Result[]> {
  const servers = loadAllServers(doctorConfig, env);
  const [first] = servers;
  if (!first) throw new ConfigError(['CLICKHOUSE_SERVERS_FILE: names no server']);
  const { config } = first;
  requireAddresses(config, services);
  const clocks = new Clocks();
  const shards = new Shards();
  const kafka = usesKafka(config, services) ? new KafkaChecks(config, services, clocks) : undefined;
  const checks: Check[] = [...(kafka?.checks ?? [])];
  if (usesClickHouse(services))
    checks.push(...servers.flatMap((server) => ofServer(server, services, { clocks, shards })));
  if (services.includes('writer') && areReplicas(env)) checks.push(shards.check);
  if (services.length > 0) checks.push(clocks.check(config.CLOCK_SKEW_MS_MAX));
  checks.push(...serviceChecks(config));
  try {
    return await runChecks(checks, { signal, secrets: secretsOf(config), onResult });
  } finally {
    if (kafka) await atMost(CLOSE_MS_MAX, kafka[Symbol.asyncDispose]());
  }
}

function usesClickHouse(services: readonly ServiceName[]): boolean {
  return services.includes('writer') || services.includes('query-api');
}

function usesKafka(config: DoctorConfig, services: readonly ServiceName[]): config is DoctorConfig & KafkaConfig {
  return config.KAFKA_BROKERS !== undefined && (services.includes('ingest-api') || services.includes('writer'));
}

/** @throws {ConfigError} that names each address which is missing */
function requireAddresses(config: DoctorConfig, services: readonly ServiceName[]): void {
  const needsKafka = services.includes('ingest-api') || services.includes('writer');
  const errors = [
    ...(needsKafka && config.KAFKA_BROKERS === undefined ? ['KAFKA_BROKERS: is required'] : []),
    ...(usesClickHouse(services) && config.CLICKHOUSE_URL === undefined ? ['CLICKHOUSE_URL: is required'] : []),
  ];
  if (errors.length > 0) throw new ConfigError(errors);
}

function ofServer(
  { config, server }: ServerConfig<typeof doctorConfig>,
  services: readonly ServiceName[],
  found: { readonly clocks: Clocks; readonly shards: Shards },
): readonly Check[] {
  const partitions = describeRange(server?.partitions);
  const checked = { name: server?.name, partitions, config: config as DoctorConfig & ClickHouseConfig };
  return new ClickHouseChecks(checked, services, found).checks;
}

/** Returns a result as one line; one that needs attention with why and what to do. */
function lineOf({ state, name, why, found, todo }: Result): string {
  const line = `${(state === 'wrong' ? 'WRONG' : state).padEnd(8)}${name.padEnd(20)} ${found}`;
  return todo === undefined ? line : `${line} | why: ${why} | do: ${todo}`;
}
