import { randomUUID } from 'node:crypto';
import { text } from 'node:stream/consumers';
import { readDatabaseState } from '@sluice/servers/state/database-state';
import { connectionHint } from '@sluice/shared/base/connection-hints';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { COLD_POLICY, policyProblem, type Volume } from '@sluice/shared/clickhouse/cold-policy';
import { migrateAccount } from '@sluice/shared/clickhouse/migrate';
import {
  CLICKHOUSE_VERSION_MIN,
  isTooOld,
  NotOneServer,
  requireOneServer,
  requireSharedTables,
  UnusableServer,
  wrongReplication,
} from '@sluice/shared/clickhouse/one-server';
import { PINNED_SETTINGS, replicatedSettings } from '@sluice/shared/clickhouse/settings';
import { type ClickHouseConfig, isReplicated, isShared } from '@sluice/shared/config';
import { formSender } from '@sluice/storage/clickhouse/form-request';
import { STATEMENTS } from '@sluice/storage/clickhouse/statements';
import { missingOf } from '../command/missing-rights.ts';
import { type Check, type Finding, note, ok, reasonOf, wrong } from './check.ts';
import { type Account, accountsOf, type Role, rightsOf } from './clickhouse-accounts.ts';
import { ask, clientOf, hasRights, REQUEST_MS_MAX, type Settings, send } from './clickhouse-questions.ts';
import type { Clocks } from './clocks.ts';
import type { DoctorConfig, ServiceName } from './config.ts';
import type { Shards } from './shards.ts';

/** The version of ClickHouse that the tests use. */
export const CLICKHOUSE_VERSION_TESTED = [26, 7] as const;

/** Below these parts of the whole an alert would fire. */
const FREE_PART_MIN = 0.1;
const PARTS_PART_MAX = 0.5;

/** How long the cold volume may take to answer, in milliseconds. */
const COLD_READ_MS_MAX = 10_000;

/** By how much a replica may lack rows that others have, in seconds: an alert would fire. */
const REPLICA_DELAY_SECONDS_MAX = 300;

const COLD_STORAGE = 'docs/operate/cold-storage.md';
const ACCOUNTS = 'docs/operate/secure.md#accounts';
const CLUSTER = 'docs/operate/existing-cluster.md';
const CLOUD = `${CLUSTER}#clickhouse-cloud`;

export interface CheckedServer {
  /** Undefined where there is one. */
  readonly name: string | undefined;
  /** The partitions that it stores: `all`, or a range such as `0-23`. */
  readonly partitions: string;
  readonly config: DoctorConfig & ClickHouseConfig;
}

/** What Sluice relies on in a ClickHouse server. */
export class ClickHouseChecks {
  readonly #server: CheckedServer;
  readonly #accounts: readonly Account[];
  readonly #services: readonly ServiceName[];
  readonly #clocks: Clocks;
  readonly #shards: Shards;

  /** @param found where checks leave what others compare */
  constructor(
    server: CheckedServer,
    services: readonly ServiceName[],
    found: { readonly clocks: Clocks; readonly shards: Shards },
  ) {
    this.#server = server;
    this.#services = services;
    this.#clocks = found.clocks;
    this.#shards = found.shards;
    this.#accounts = accountsOf(server.config, services);
  }

  get checks(): readonly Check[] {
    const suffix = this.#server.name === undefined ? '' : `[${this.#server.name}]`;
    const named = (name: string) => `clickhouse.${name}${suffix}`;
    const check = (name: string, why: string, needs: readonly string[], run: Check['run']): Check => ({
      ...{ name: named(name), why, needs: needs.map(named), run },
    });
    const stores = this.#services.includes('writer');
    return [
      check('reached', 'Each service logs in to ClickHouse with an account of its own.', [], () => this.#reach()),
      check('version', 'Tables and statements need functions of newer versions.', ['reached'], () =>
        this.#checkVersion(),
      ),
      check(
        'settings',
        'Each request sends the settings that decide what its statement means; an account that may not is refused.',
        ['reached'],
        () => this.#checkSettings(),
      ),
      check(
        'server',
        isShared(this.#main)
          ? 'Any statement may reach any replica: a writer has to know all of them to end what another one has sent.'
          : 'A statement is ended, and a temporary table is read, where it was begun: a balancer in front leads elsewhere.',
        ['settings'],
        () => (isShared(this.#main) ? this.#checkSharedReplicas() : this.#checkOneServer()),
      ),
      check('rights', 'A right that is missing shows only when it is needed.', ['settings'], () => this.#checkRights()),
      ...(stores
        ? [
            isShared(this.#main)
              ? check(
                  'carried',
                  'The writers send the rows of a batch with each statement that reads them, as a form.',
                  ['server', 'rights'],
                  () => this.#checkCarriedRows(),
                )
              : check(
                  'sessions',
                  'The writers stage each batch in temporary tables, which live in a session of several requests.',
                  ['server', 'rights'],
                  () => this.#checkSessions(),
                ),
            check(
              'kill',
              'A writer ends the statements of its predecessor, or both would store the same rows.',
              ['server', 'rights'],
              (signal) => this.#checkKill(signal),
            ),
            ...(isReplicated(this.#main)
              ? [
                  check(
                    'replication',
                    'Replicas find each other by the names that each has, and agree by Keeper.',
                    ['server', 'rights'],
                    () => this.#checkReplication(),
                  ),
                ]
              : []),
            check('disk', 'Without free space ClickHouse refuses inserts and merges.', ['rights'], () =>
              this.#checkDisks(),
            ),
            check('parts', 'With too many parts ClickHouse refuses inserts.', ['rights'], () => this.#checkParts()),
            check(
              'cold',
              'Months that moved to another volume are read from it, and from nowhere else.',
              ['server', 'rights'],
              (signal) => this.#checkColdVolume(signal),
            ),
            check(
              'scratch',
              'Rows have to be stored as the tables say it: synced to disk, with text indexes and projections.',
              ['server', 'rights'],
              (signal) => this.#checkScratch(signal),
            ),
          ]
        : []),
      check(
        'tables',
        'Services use the tables of their version, and their settings keep what was stored.',
        ['server', 'rights'],
        () => this.#checkTables(),
      ),
    ];
  }

  get #main(): ClickHouseConfig {
    return this.#server.config;
  }

  get #database(): string {
    return this.#main.CLICKHOUSE_DATABASE;
  }

  async #reach(): Promise<Finding> {
    const host = new URL(this.#main.CLICKHOUSE_URL).host;
    const failures: string[] = [];
    let hint: string | undefined;
    for (const { variable, config } of this.#accounts) {
      try {
        await send(config, 'SELECT 1');
      } catch (error) {
        failures.push(`${variable} (${config.CLICKHOUSE_USER}): ${reasonOf(error)}`);
        hint ??= connectionHint(error);
      }
    }
    const names = this.#accounts.map(({ config }) => config.CLICKHOUSE_USER).join(', ');
    if (failures.length === 0) return ok(`${host}, as ${names}`);
    return wrong(
      `${host} does not let in ${failures.join('; ')}`,
      hint ?? 'See whether ClickHouse runs, and check CLICKHOUSE_URL and the accounts.',
    );
  }

  async #checkVersion(): Promise<Finding> {
    return versionFinding((await send(this.#main, 'SELECT version()')).trim());
  }

  async #checkOneServer(): Promise<Finding> {
    await this.#readClock();
    try {
      return ok(`several connections led to ${await requireOneServer(this.#main)}`);
    } catch (error) {
      if (!(error instanceof NotOneServer)) throw error;
      return wrong(error.message, await this.#namingServers(error.hosts));
    }
  }

  /** What to do where a cluster is behind the address. @param answering the hosts that answered there */
  async #namingServers(answering: readonly string[]): Promise<string> {
    // Their account need not see it.
    const known = await ask<{ hosts: string[] }>(this.#main, REPLICAS_OF_A_SHARD).catch(() => []);
    const file = proposedServers(known[0]?.hosts ?? answering, this.#main.CLICKHOUSE_URL);
    const such = file === undefined ? '' : `, such as ${file}`;
    return `Name each server by its own address in CLICKHOUSE_SERVERS_FILE${such}, with a database that is not replicated: ${CLUSTER}.`;
  }

  async #readClock(): Promise<void> {
    const startedAt = performance.now();
    const beforeMs = Date.now();
    const [row] = await ask<{ ms: number }>(this.#main, 'SELECT toUnixTimestamp64Milli(now64(3)) AS ms');
    const name = this.#server.name === undefined ? 'ClickHouse' : `ClickHouse ${this.#server.name}`;
    this.#clocks.add({ of: name, beforeMs, tookMs: performance.now() - startedAt, theirMs: Number(row?.ms) });
  }

  async #checkSettings(): Promise<Finding> {
    const problems: string[] = [];
    for (const { variable, roles, config } of this.#accounts) {
      if (roles.length === 0) continue;
      const memory = this.#server.config.QUERY_MEMORY_BYTES_MAX;
      const settings = {
        max_execution_time: '10',
        ...(isReplicated(config) && settingsOfReplicas(roles)),
        ...(roles.includes('query') && memory !== undefined && { max_memory_usage: String(memory) }),
      };
      await ask(config, 'SELECT 1', { settings }).catch((error) => {
        problems.push(`${variable} (${config.CLICKHOUSE_USER}): ${reasonOf(error)}`);
      });
    }
    if (problems.length === 0) return ok(`${Object.keys(PINNED_SETTINGS).length} settings may be sent`);
    return wrong(
      problems.join('; '),
      `Use a profile without readonly, and without constraints on these settings: ${ACCOUNTS} has one that works.`,
    );
  }

  async #checkRights(): Promise<Finding> {
    const problems: string[] = [];
    for (const { roles, config } of this.#accounts) {
      const rights = await Promise.all(roles.map((role) => rightsOf(role, config)));
      const missing = await missingOf((some) => hasRights(config, some), rights.flat());
      if (missing.length > 0) problems.push(`${config.CLICKHOUSE_USER} lacks ${listed(missing)}`);
    }
    if (problems.length === 0) return ok('each account has the rights that it needs');
    return wrong(problems.join('; '), `Run deploy/clickhouse/accounts.sql again, or grant them: ${ACCOUNTS}.`);
  }

  async #checkSharedReplicas(): Promise<Finding> {
    await this.#readClock();
    // Others have no right to ask the cluster, and need none.
    if (!this.#services.includes('writer')) return ok('any replica may answer query-api');
    try {
      const found = await ask<{ replica: string }>(this.#main, SHARED_REPLICAS);
      // Older versions do not say it.
      const ages = await ask(this.#main, STATEMENTS['read-sessions'].sql).catch(() => []);
      const names = listed(found.map(({ replica }) => replica).toSorted());
      if (ages.length > 0) return ok(`${found.length} replicas share the rows: ${names}`);
      return note(
        `${found.length} replicas share the rows: ${names}; none says how old its session of Keeper is`,
        'Writers wait for some time then when they take partitions over.',
      );
    } catch (error) {
      return wrong(
        `the replicas behind the address cannot be asked: ${reasonOf(error)}`,
        `Run deploy/clickhouse/shared.sql, and use CLICKHOUSE_REPLICATION=shared with ClickHouse Cloud alone: ${CLOUD}.`,
      );
    }
  }

  async #checkCarriedRows(): Promise<Finding> {
    await using client = clientOf(this.#main, 'default', PINNED_SETTINGS);
    const rows = Buffer.from('{"number":7}\n');
    const { stream } = await formSender(client)({
      query: 'SELECT number FROM doctor FORMAT TSV',
      ...{ query_id: `sluice-doctor-${randomUUID()}`, query_params: {}, clickhouse_settings: {} },
      tables: [{ name: 'doctor', format: 'JSONEachRow', columns: { number: 'UInt8' }, chunks: [rows] }],
    });
    if ((await text(stream)).trim() === '7') return ok('a statement reads rows that were sent with it');
    return wrong(
      'a statement does not find rows that were sent with it',
      'Use an address without a proxy that changes requests.',
    );
  }

  async #checkSessions(): Promise<Finding> {
    const sessionId = `sluice-doctor-${randomUUID()}`;
    const ofSession = { sessionId, settings: { session_timeout: '10' } };
    await ask(this.#main, 'CREATE TEMPORARY TABLE doctor ENGINE = Memory AS SELECT 7 AS number', ofSession);
    try {
      const [row] = await ask<{ number: number }>(this.#main, 'SELECT number FROM doctor', ofSession);
      if (row?.number === 7) return ok('a temporary table is there in the next request');
      return wrong('a temporary table is empty in the next request', 'Give the services the address of one server.');
    } catch (error) {
      return wrong(
        `a temporary table is gone in the next request: ${reasonOf(error)}`,
        'Give the services the address of one server, without a proxy that changes the user or drops sessions.',
      );
    } finally {
      // ClickHouse also forgets it by itself, after the timeout.
      await ask(this.#main, 'SELECT 1', { sessionId, settings: { close_session: '1' } }).catch(() => undefined);
    }
  }

  async #checkKill(signal: AbortSignal): Promise<Finding> {
    const queryId = `sluice-doctor-${randomUUID()}`;
    // It ends by itself, also when nobody ends it.
    const settings = { max_block_size: '1', max_execution_time: '10' };
    const slow = 'SELECT sum(sleepEachRow(0.5)) FROM numbers(16)';
    const ended = ask(this.#main, slow, { queryId, settings, signal }).then(
      () => 'by itself',
      (error) => reasonOf(error),
    );
    // At several replicas it has a row for each, whether it has found something there or not.
    const saysWhatItFound = !isShared(this.#main);
    const where = saysWhatItFound ? 'WHERE' : 'ON CLUSTER default WHERE';
    const kill = `KILL QUERY ${where} query_id = {queryId:String} SYNC`;
    let isFound = false;
    while (!isFound && !signal.aborted) {
      const rows = await ask(this.#main, kill, { params: { queryId } });
      isFound = saysWhatItFound && rows.length > 0;
      if (!isFound && (await Promise.race([ended, Promise.resolve(undefined)])) !== undefined) break;
    }
    const how = await ended;
    if (isFound || (!saysWhatItFound && how !== 'by itself'))
      return ok('a statement was ended from another connection');
    return wrong(
      `KILL QUERY did not find a statement that ran (it ended: ${how})`,
      saysWhatItFound
        ? 'Give the services the address of one server: a proxy in front leads KILL QUERY elsewhere, or changes the user.'
        : `See whether the cluster default has all replicas, and run deploy/clickhouse/shared.sql: ${CLOUD}.`,
    );
  }

  async #checkReplication(): Promise<Finding> {
    const [names] = await ask<{ shard: string; replica: string; seconds: number }>(
      this.#main,
      "SELECT getMacro('shard') AS shard, getMacro('replica') AS replica, toUInt32(zookeeperSessionUptime()) AS seconds",
    ).catch((error) => [reasonOf(error)] as const);
    if (names === undefined || typeof names === 'string')
      return wrong(
        names ?? 'ClickHouse does not say its names',
        `Give each replica the macros shard and replica, and a Keeper: ${CLUSTER}#replicated-tables.`,
      );
    const { name = '', partitions } = this.#server;
    this.#shards.add({ server: name, partitions, shard: names.shard, replica: names.replica });
    const [tables] = await ask<{ closed: number; delay: number; queue: number }>(
      this.#main,
      `SELECT toUInt32(countIf(is_readonly OR is_session_expired)) AS closed, toUInt32(max(absolute_delay)) AS delay,
        toUInt32(sum(queue_size)) AS queue
      FROM system.replicas WHERE database = {database:String}`,
      { params: { database: this.#database } },
    );
    return replicationFinding({ ...names, closed: 0, delay: 0, queue: 0, ...tables });
  }

  async #checkDisks(): Promise<Finding> {
    const query = 'SELECT name, toFloat64(free_space) AS free, toFloat64(total_space) AS total FROM system.disks';
    const disks = await ask<{ name: string; free: number; total: number }>(this.#main, query);
    const shown = (some: typeof disks) =>
      some.map(({ name, free, total }) => `${name} has ${gigabytes(free)} of ${gigabytes(total)} free`).join(', ');
    const full = disks.filter(({ free, total }) => total > 0 && free / total < FREE_PART_MIN);
    if (full.length === 0) return ok(shown(disks));
    return wrong(
      shown(full),
      'Give the disk more room, or keep events for a shorter time (docs/operate/retention.md).',
    );
  }

  async #checkColdVolume(signal: AbortSignal): Promise<Finding> {
    const params = { database: this.#database, policy: COLD_POLICY };
    const [events] = await ask<{ policy: string }>(
      this.#main,
      "SELECT storage_policy AS policy FROM system.tables WHERE database = {database:String} AND name = 'events'",
      { params },
    );
    const isUsed = events?.policy === COLD_POLICY;
    const days = this.#server.config.EVENTS_COLD_AFTER_DAYS ?? 'never';
    if (days === 'never' && !isUsed) return ok('all months stay on the volume of new events');
    const volumes = await ask<Volume>(
      this.#main,
      `SELECT volume_name AS volume, disks, toFloat64(move_factor) AS move_factor FROM system.storage_policies
        WHERE policy_name = {policy:String} ORDER BY volume_priority`,
      { params },
    );
    const problem = policyProblem(volumes);
    if (problem !== undefined) return wrong(problem, `Add it to the configuration of ClickHouse: ${COLD_STORAGE}.`);
    const disks = volumes.at(-1)?.disks ?? [];
    const [cold] = await ask<{ part: string; size: number }>(
      this.#main,
      `SELECT any(name) AS part, toFloat64(sum(bytes_on_disk)) AS size FROM system.parts
        WHERE database = {database:String} AND table = 'events' AND active AND disk_name IN {disks:Array(String)}
        HAVING count() > 0`,
      { params: { ...params, disks } },
    );
    if (!cold) return ok(`nothing is on ${disks.join(', ')} yet`);
    // A request to the disk: ClickHouse keeps no values of a column.
    const one = `SELECT uuid FROM ${this.#database}.events WHERE _part = {part:String} LIMIT 1`;
    const limit = AbortSignal.any([signal, AbortSignal.timeout(COLD_READ_MS_MAX)]);
    try {
      await ask(this.#main, one, { params: { part: cold.part }, signal: limit });
    } catch (error) {
      return wrong(
        `${disks.join(', ')} does not answer: ${limit.aborted ? `nothing in ${COLD_READ_MS_MAX / 1_000} s` : reasonOf(error)}`,
        `See whether its S3 can be reached from ClickHouse, with its account: ${COLD_STORAGE}.`,
      );
    }
    return ok(`${disks.join(', ')} has ${gigabytes(cold.size)}, and answers`);
  }

  async #checkParts(): Promise<Finding> {
    const query = `
      SELECT table, max(active_parts) AS parts, (
        SELECT toUInt64(value) FROM system.merge_tree_settings WHERE name = 'parts_to_throw_insert'
      ) AS limit
      FROM (
        SELECT table, partition_id, toUInt32(count()) AS active_parts FROM system.parts
        WHERE database = {database:String} AND active GROUP BY table, partition_id
      )
      GROUP BY table ORDER BY parts DESC LIMIT 1`;
    const params = { database: this.#database };
    const [fullest] = await ask<{ table: string; parts: number; limit: string }>(this.#main, query, { params });
    if (!fullest) return ok('no table has parts yet');
    const found = `${fullest.table} has ${fullest.parts} parts in a partition, of ${fullest.limit}`;
    if (fullest.parts <= PARTS_PART_MAX * Number(fullest.limit)) return ok(found);
    return wrong(found, 'See docs/operate/alerts.md#sluicepartsnearlimit.');
  }

  /** Stores a batch in a database of its own, and removes both, where the account that changes tables may do that anywhere. */
  async #checkScratch(signal: AbortSignal): Promise<Finding> {
    const account = migrateAccount(this.#main);
    const database = `${this.#database}_doctor_${randomUUID().replaceAll('-', '')}`;
    const rights = ['CREATE DATABASE', 'CREATE TABLE', 'INSERT', 'SELECT', 'DROP DATABASE', 'DROP TABLE'];
    const missing = await missingOf(
      (some) => hasRights(account, some),
      rights.map((right) => `${right} ON ${database}.*`),
    );
    if (missing.length > 0)
      return ok(`not tried: ${account.CLICKHOUSE_USER} may not create another database, and need not`);
    const table = `${database}.events`;
    try {
      await ask(account, `CREATE DATABASE ${database}`, { signal });
      await ask(account, SCRATCH_TABLE.replace('events', table), { signal });
      await ask(account, `INSERT INTO ${table} SELECT toString(number), number % 3 FROM numbers(1000)`, { signal });
      const plan = await ask<{ explain: string }>(
        account,
        `EXPLAIN indexes = 1 SELECT count() FROM ${table} WHERE has([name], '7')`,
        { signal },
      );
      const [counts] = await ask<{ rows: string; sums: string }>(
        account,
        `SELECT sum(rows) AS rows, (SELECT sum(rows) FROM system.projection_parts WHERE database = {database:String}) AS sums
          FROM system.parts WHERE database = {database:String}`,
        { params: { database }, signal },
      );
      const problems = [
        // Of a part another replica may not know yet.
        ...(Number(counts?.rows) === 1_000 || isShared(this.#main)
          ? []
          : ['a batch of 1000 rows was not stored as one']),
        ...(Number(counts?.sums) > 0 || isShared(this.#main) ? [] : ['projections are not stored']),
        ...(plan.some(({ explain }) => explain.includes('name_text')) ? [] : ['text indexes are not used']),
      ];
      if (problems.length === 0) return ok('a batch was stored, with a text index and a projection, and removed');
      return wrong(problems.join('; '), 'Use a version that the tests use, without settings that turn these off.');
    } finally {
      await ask(account, `DROP DATABASE IF EXISTS ${database} SYNC`);
    }
  }

  async #checkTables(): Promise<Finding> {
    await using client = clientOf(this.#main, this.#database, PINNED_SETTINGS);
    const { version, missing, unknown, isTooNew } = await readDatabaseState(client);
    if (isTooNew)
      return wrong(
        'a newer version has changed the tables so that this one cannot use them',
        'Run the newer version: docs/operate/upgrade.md.',
      );
    if (version === undefined || missing > 0)
      return note(
        `${missing} migrations are missing`,
        'The writers apply them when they start, or npm run migrations -- apply.',
      );
    if (isShared(this.#main)) return await this.#checkSharedTables(client, unknown.length);
    const tables = await ask<{ name: string; engine: string; synced: 0 | 1 }>(
      this.#main,
      `SELECT name, engine, engine_full LIKE '%fsync_after_insert = 1%' AS synced
      FROM system.tables WHERE database = {database:String} AND name IN ('events', 'entities') ORDER BY name`,
      { params: { database: this.#database } },
    );
    const wrongTables = tables
      .map(({ engine }) => wrongReplication(this.#main, engine))
      .find((one) => one !== undefined);
    if (wrongTables !== undefined) return wrong(wrongTables, `See ${CLUSTER}#replicated-tables.`);
    const unsynced = tables.filter(({ synced }) => synced === 0);
    if (unsynced.length > 0)
      return note(
        `inserts into ${unsynced.map(({ name }) => name).join(' and ')} are not synced to disk`,
        'If that is not meant, set fsync_after_insert = 1: docs/operate/durability.md#clickhouse.',
      );
    if (unknown.length > 0) return ofNewerVersion(unknown.length);
    return ok('all migrations are applied, and inserts are synced');
  }

  async #checkSharedTables(client: ClickHouseClient, unknown: number): Promise<Finding> {
    try {
      await requireSharedTables(client);
    } catch (error) {
      if (!(error instanceof UnusableServer)) throw error;
      return wrong(error.message, `Use another mode: ${CLUSTER}.`);
    }
    if (unknown > 0) return ofNewerVersion(unknown);
    return ok('all migrations are applied, and replicas share the rows of all tables');
  }
}

function ofNewerVersion(migrations: number): Finding {
  return note(`${migrations} migrations are of a newer version`, 'Upgrade the others too.');
}

/** The replicas behind one address: each has this statement at least, and a writer may read the table. */
const SHARED_REPLICAS =
  "SELECT DISTINCT concat(hostName(), ':', toString(tcpPort())) AS replica FROM clusterAllReplicas(default, system.processes)";

/** A small table of what the tables of Sluice are made of. */
const SCRATCH_TABLE = `CREATE TABLE events (
  name String, kind UInt8,
  INDEX name_text [name] TYPE text(tokenizer = 'array') GRANULARITY 100000000,
  PROJECTION by_kind (SELECT kind, count() GROUP BY kind)
) ENGINE = MergeTree ORDER BY kind SETTINGS
  fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1,
  min_free_disk_bytes_to_perform_insert = 67108864`;

/**
 * The hosts of a shard with replicas, of all that the server knows: of one that it is in, and of the smallest, since operators of
 * Kubernetes also define a cluster of everything. Those of this machine alone are of examples.
 */
const REPLICAS_OF_A_SHARD = `
  SELECT arraySort(groupUniqArray(host_name)) AS hosts
  FROM system.clusters
  WHERE host_name != 'localhost' AND NOT startsWith(host_name, '127.')
  GROUP BY cluster, shard_num
  HAVING length(hosts) > 1
  ORDER BY max(is_local) DESC, length(hosts), cluster, shard_num
  LIMIT 1`;

/**
 * Returns a file of servers, on one line: each host is a mirror, by the protocol and the port of the address that they had in common.
 * Undefined for fewer than two.
 */
export function proposedServers(hosts: readonly string[], commonUrl: string): string | undefined {
  if (hosts.length < 2) return undefined;
  const { protocol, port } = new URL(commonUrl);
  const address = (host: string) => `${protocol}//${host.includes(':') ? `[${host}]` : host}${port && `:${port}`}`;
  return JSON.stringify({ servers: hosts.map((host, index) => ({ name: `a${index + 1}`, url: address(host) })) });
}

/** Returns the settings that an account sends to replicas besides those that each server gets. */
export function settingsOfReplicas(roles: readonly Role[]): Settings {
  const stores = roles.includes('writer') || roles.includes('webhooks');
  // Two are the fewest replicas of which each insert says on how many its rows have to be.
  const settings = stores ? replicatedSettings(2, REQUEST_MS_MAX) : {};
  const texts = Object.entries(settings).map(([name, value]) => [name, String(value)]);
  return { ...Object.fromEntries(texts), ...(roles.includes('writer') && { receive_timeout: '10' }) };
}

/** How a replica is. */
export interface ReplicaState {
  readonly shard: string;
  readonly replica: string;
  /** How old its session of Keeper is, in seconds; 0 without one. */
  readonly seconds: number;
  /** How many tables take no rows. */
  readonly closed: number;
  /** By how much it lacks rows that others have, in seconds. */
  readonly delay: number;
  readonly queue: number;
}

/** Returns what the state of a replica means for Sluice. */
export function replicationFinding({ shard, replica, seconds, closed, delay, queue }: ReplicaState): Finding {
  const name = `replica ${replica} of shard ${shard}`;
  if (seconds === 0)
    return wrong(
      `${name}, with no session of Keeper`,
      "See whether it reaches Keeper: SELECT name FROM system.zookeeper WHERE path = '/' opens a session, " +
        'which a host that has not used Keeper yet does not have either.',
    );
  const found = `${name}, with a session of Keeper`;
  if (closed > 0)
    return wrong(`${found}; ${closed} tables take no rows`, 'See docs/operate/alerts.md#sluicereplicareadonly.');
  if (delay > REPLICA_DELAY_SECONDS_MAX)
    return wrong(
      `${found}; ${delay} s behind others, with ${queue} entries in its queue`,
      'See what system.replication_queue says of them, and how busy its disk and its network are.',
    );
  return ok(found);
}

/** Returns what a version means for Sluice. */
export function versionFinding(version: string): Finding {
  const tested = CLICKHOUSE_VERSION_TESTED.join('.');
  if (isTooOld(version))
    return wrong(
      `${version}, and ${CLICKHOUSE_VERSION_MIN.join('.')} or newer is needed`,
      `Upgrade ClickHouse; tests use ${tested}.`,
    );
  if (version.startsWith(`${tested}.`)) return ok(version);
  return note(`${version}; tests use ${tested}`, `It is expected to work. Prefer ${tested} where you can choose.`);
}

/** Returns the first of many names, and how many more there are. */
function listed(names: readonly string[]): string {
  const shown = names.slice(0, 5).join(', ');
  return names.length > 5 ? `${shown} and ${names.length - 5} more` : shown;
}

function gigabytes(bytes: number): string {
  return `${(bytes / 1e9).toFixed(1)} GB`;
}
