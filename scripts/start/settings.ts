import { join, resolve } from 'node:path';

/** From `LOG`: which lines of the services `npm start` shows, besides warnings and errors. `files` shows no others. */
export type ShownLogs = 'files' | 'text' | 'json';

/** The settings of `npm start`. */
export interface Settings {
  readonly dataDir: string;
  /** Where the logs of engines and services are: `logs` in the data folder. */
  readonly logDir: string;
  readonly logs: ShownLogs;
  /** From `SLUICE_DEV_KEY`; `undefined`: the one of the data folder, created at the first start. */
  readonly devKey: string | undefined;
  readonly ports: {
    readonly ingest: number;
    readonly query: number;
    readonly writer: number;
    readonly kafka: number;
    readonly clickhouse: number;
    /** From `TRENCH_PORT`; `undefined`: trench-api is not started. */
    readonly trench?: number | undefined;
  };
  /** From `KAFKA_BROKERS`: the Kafka to use instead of a local one. */
  readonly externalKafka: string | undefined;
  /** From `CLICKHOUSE_URL`: the ClickHouse to use instead of a local one. */
  readonly externalClickHouse: string | undefined;
}

const PORTS = {
  ingest: ['INGEST_PORT', 4000],
  query: ['QUERY_PORT', 4001],
  writer: ['WRITER_PORT', 4002],
  kafka: ['KAFKA_PORT', 4092],
  clickhouse: ['CLICKHOUSE_PORT', 4123],
} as const;

const TRENCH_PORT = 'TRENCH_PORT';

export type PortName = keyof Settings['ports'];

export const PORT_NAMES: readonly PortName[] = [...(Object.keys(PORTS) as (keyof typeof PORTS)[]), 'trench'];

export const START_HELP = `Usage: npm start [-- --engines]

Starts Kafka, ClickHouse and the three services on 127.0.0.1, in the foreground. Ctrl-C stops them; the data stays.

  --engines         starts Kafka and ClickHouse only, as a restore needs it

Environment variables:
  INGEST_PORT, QUERY_PORT, WRITER_PORT, KAFKA_PORT, CLICKHOUSE_PORT
                    the ports (default ${Object.values(PORTS)
                      .map(([, port]) => port)
                      .join(', ')})
  TRENCH_PORT       the port of Trench's HTTP interface (default: it is not started)
  SLUICE_DATA_DIR   the folder for data, logs and keys (default .sluice in the checkout)
  SLUICE_DEV_KEY    the development key (default: created at the first start)
  KAFKA_BROKERS     host:port of a Kafka to use instead of a local one; several are separated by commas
  CLICKHOUSE_URL    the address of a ClickHouse to use instead of a local one
  LOG               what is shown of the services' logs, which are in the folder logs of the data folder: files (default:
                    only warnings and errors), text (all lines, for people) or json (all lines, as they are)
  LOG_LEVEL         of the services (default info)
  ALLOWED_HOSTS     names that the services may be reached by, besides IP addresses (default localhost)
All other variables of docs/operate/configuration.md are passed on to the services.`;

/** The variable that sets a port, for messages. */
export function portVariable(name: PortName): string {
  return name === 'trench' ? TRENCH_PORT : PORTS[name][0];
}

/**
 * Reads the variables of `npm start`. An empty variable counts as unset.
 *
 * @param root the folder from which relative paths start
 * @returns the settings, and one sentence for each wrong variable; use the settings only if there are none
 */
export function readSettings(env: NodeJS.ProcessEnv, root: string): { settings: Settings; faults: string[] } {
  const faults: string[] = [];
  const read = (name: string): string | undefined => env[name] || undefined;
  const ports = readPorts(read, faults);
  const devKey = read('SLUICE_DEV_KEY');
  if (devKey !== undefined && !/^[\x21-\x7e]{16,200}$/.test(devKey)) {
    faults.push('SLUICE_DEV_KEY must be 16 to 200 visible ASCII characters.');
  }
  const externalKafka = read('KAFKA_BROKERS');
  if (externalKafka !== undefined && !externalKafka.split(',').every((broker) => /^\s*[^\s,]+:\d+\s*$/.test(broker))) {
    faults.push('KAFKA_BROKERS must be a list of host:port separated by commas.');
  }
  const externalClickHouse = read('CLICKHOUSE_URL');
  if (externalClickHouse !== undefined && !/^https?:$/.test(URL.parse(externalClickHouse)?.protocol ?? '')) {
    faults.push('CLICKHOUSE_URL must be an http:// or https:// address.');
  }
  for (const variable of ['TLS_CERT_FILE', 'TLS_KEY_FILE']) {
    if (read(variable) !== undefined)
      faults.push(`${variable} is not for npm start, whose services listen on loopback alone.`);
  }
  const logs = read('LOG') ?? 'files';
  if (!isShownLogs(logs)) faults.push('LOG must be files, text or json.');
  const dataDir = resolve(root, read('SLUICE_DATA_DIR') ?? '.sluice');
  const shown = isShownLogs(logs) ? logs : 'files';
  const folders = { dataDir, logDir: join(dataDir, 'logs') };
  return { settings: { ...folders, logs: shown, devKey, ports, externalKafka, externalClickHouse }, faults };
}

function isShownLogs(text: string): text is ShownLogs {
  return ['files', 'text', 'json'].includes(text);
}

function readPorts(read: (name: string) => string | undefined, faults: string[]): Settings['ports'] {
  const users = new Map<number, string>();
  const readPort = (name: keyof typeof PORTS): number => {
    const [variable, fallback] = PORTS[name];
    return parsePort(variable, read(variable) ?? String(fallback));
  };
  const parsePort = (variable: string, text: string): number => {
    const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
    const other = users.get(port);
    users.set(port, variable);
    if (port < 1 || port > 65_535) faults.push(`${variable} must be a port number from 1 to 65535.`);
    else if (other) faults.push(`${variable} and ${other} are both ${port}; each needs a port of its own.`);
    return port;
  };
  const trench = read(TRENCH_PORT);
  return {
    ingest: readPort('ingest'),
    query: readPort('query'),
    writer: readPort('writer'),
    kafka: readPort('kafka'),
    clickhouse: readPort('clickhouse'),
    trench: trench === undefined ? undefined : parsePort(TRENCH_PORT, trench),
  };
}
