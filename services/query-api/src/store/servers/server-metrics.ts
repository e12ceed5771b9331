import type { FollowedFileState } from '@sluice/shared/config/followed-file';
import { declareFileMetrics } from '@sluice/shared/config/followed-file-metrics';
import { declareReadGauge, type Sample } from '@sluice/shared/service/read-gauge';
import { Counter, type Registry } from 'prom-client';
import type { Replication } from './server-state.ts';

/** What query-api finds out about a ClickHouse server of several, when it looks. */
export interface ServerReading {
  readonly name: string;
  /** Why it cannot be read; undefined when it can. */
  readonly reason: string | undefined;
  /** How far behind Kafka it is; undefined while that is not known. */
  readonly behindSeconds: number | undefined;
  /** Undefined where tables are not replicated, and while it does not respond. */
  readonly replication: Replication | undefined;
  /** Whether requests read it. */
  readonly isChosen: boolean;
}

/** Counts how often servers were given up. Those of the file begin with 0. */
export class GivenUpServers {
  readonly #counter: Counter<'server'>;

  /** Declares the counter. */
  constructor(registry: Registry) {
    this.#counter = new Counter({
      name: 'sluice_query_given_up_servers_total',
      help: 'How often a server was given up because it did not respond and another one did.',
      labelNames: ['server'],
      registers: [registry],
    });
  }

  expect(names: readonly string[]): void {
    for (const server of names) this.#counter.inc({ server }, 0);
  }

  note(server: string): void {
    this.#counter.inc({ server });
  }
}

/**
 * Declares the metrics of the ClickHouse servers of a file, and of the file.
 *
 * @param look finds out how each server is
 */
export function declareServerMetrics(
  registry: Registry,
  look: () => Promise<readonly ServerReading[]>,
  file: () => FollowedFileState,
): void {
  const declare = (name: string, help: string, valueIn: (reading: ServerReading) => number | undefined) =>
    declareReadGauge(registry, { name, help, labelNames: ['server'] }, async () =>
      (await look()).flatMap((reading): Sample[] => {
        const value = valueIn(reading);
        return value === undefined ? [] : [{ labels: { server: reading.name }, value }];
      }),
    );
  declare('sluice_query_server_readable', '1 for a server that can be read, 0 while it cannot.', ({ reason }) =>
    reason === undefined ? 1 : 0,
  );
  declare(
    'sluice_query_server_behind_seconds',
    'For how long a server has been behind Kafka, by its own clock; absent while that is not known.',
    ({ behindSeconds }) => behindSeconds,
  );
  declare(
    'sluice_query_server_read_only_tables',
    'Tables of a replica that take no rows, since it has no session of Keeper.',
    ({ replication }) => replication?.readOnlyTables,
  );
  declare(
    'sluice_query_server_replication_queue',
    'What a replica has still to fetch, to merge or to change.',
    ({ replication }) => replication?.queue,
  );
  declare('sluice_query_server_chosen', '1 for the server that requests read, 0 for the others.', ({ isChosen }) =>
    isChosen ? 1 : 0,
  );
  declareFileMetrics(registry, { metric: 'sluice_servers_file', file: 'file of servers' }, file);
}
