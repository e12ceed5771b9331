import type { Logger } from '@sluice/shared/base/log';
import { atMost } from '@sluice/shared/base/retry';
import type { Login } from '@sluice/shared/clickhouse/connection';
import { readMigrations } from '@sluice/shared/clickhouse/migrate';
import { ALL_OTHERS, keptFromMs } from '@sluice/shared/config/retention-days';
import { describeRange } from '@sluice/shared/servers/partition-range';
import type { Server } from '@sluice/shared/servers/servers-file';
import type { Component } from '@sluice/shared/service/lifecycle';
import type { QueryConfig } from '../../config.ts';
import type { ClickHouseReader } from '../clickhouse-reader.ts';
import { ConnectionFailure } from '../read-failures.ts';
import type { Store, StreamStores, Visibility } from '../stores.ts';
import { type Choice, chooseServer, type ServerStatus } from './choose-server.ts';
import { type ChosenStoreOptions, serverNames, storeOf } from './chosen-store.ts';
import { PolledServer, type PolledServerOptions } from './polled-server.ts';
import { RecentDeletions, recentMs } from './recent-deletions.ts';
import type { ServerReading } from './server-metrics.ts';

/** How often it is looked for servers that do not respond, in milliseconds. */
const LOOK_MS = 100;

/** How long a request, and who looks at the servers, waits for the first answer of each, in milliseconds. */
const ANSWER_MS_MAX = 3_000;

export type PoolConfig = Pick<QueryConfig, 'READ_LAG_MS_MAX' | 'READ_STALE_MS_MAX' | 'READ_SPREAD'>;

export interface ServerPoolOptions {
  readonly config: PoolConfig;
  /** By which a server reads others. */
  readonly login: Login;
  /** The consumer group of the server from before there was a file. */
  readonly firstGroup: string;
  /** Connects to a server. */
  readonly connect: (server: Server) => ClickHouseReader;
  readonly poll: PolledServerOptions['poll'];
  /** Called when a server is given up, with its name. */
  readonly onGivenUp: (name: string) => void;
  readonly logger: Logger;
  /** Whether the servers are replicas. Default false. */
  readonly areReplicas?: boolean | undefined;
  /** As in {@link Store.visibility}. */
  readonly fastSets?: Visibility['fastSets'];
  /** As in {@link Store.visibility}. */
  readonly identities?: Visibility['identities'];
  readonly readDeletedWithUsers: ChosenStoreOptions['readDeletedWithUsers'];
}

/** Servers with the same range of partitions, in the order in which they are preferred. */
type Mirrors = readonly PolledServer[];

/**
 * The ClickHouse servers of a file. Those with the same range of partitions are mirrors. A request reads one of each range, and
 * others when it fails. While a server does not respond and a mirror of it does, it is given up: nobody waits for it any more
 * until it answers a poll again.
 */
export class ServerPool implements StreamStores, Component {
  readonly name = 'ClickHouse servers';
  readonly #options: ServerPoolOptions;
  readonly #recent: RecentDeletions;
  /** Where the order of the file begins. */
  readonly #firstShare: number;
  readonly #retired = new RetiredServers();
  #servers: readonly PolledServer[] = [];
  /** The servers of each range of partitions, in the order of these. */
  #ranges: readonly Mirrors[] = [];
  /** The names of the servers that were chosen last. */
  #before: readonly string[] = [];
  /** Why each server was not usable when it was looked last. */
  readonly #unusable = new Map<string, string | undefined>();
  /** Aborts when any of the servers that were chosen last is given up. */
  readonly #givenUp = new AnySignal();
  #migrations = Number.POSITIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: ServerPoolOptions) {
    this.#options = options;
    const { READ_SPREAD, READ_STALE_MS_MAX } = options.config;
    this.#recent = new RecentDeletions(recentMs(READ_STALE_MS_MAX));
    this.#firstShare = READ_SPREAD ? Math.random() : 0;
  }

  async start(): Promise<void> {
    this.#migrations = (await readMigrations()).length;
    this.#timer ??= setInterval(() => this.#look(), LOOK_MS);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all([...this.#servers.map((server) => server.stop()), this.#retired.stop()]);
  }

  get areMirrored(): boolean {
    return this.#ranges.some((mirrors) => mirrors.length > 1);
  }

  /** How many migrations a server needs to be read. */
  get migrations(): number {
    return this.#migrations;
  }

  /** Over how many partitions rows are spread, as the servers have said; undefined while none has. */
  get partitionCount(): number | undefined {
    const counts = this.#servers.flatMap(({ lastState }) => lastState?.partitionCount ?? []);
    // A growth of the partitions may be under way on some of them.
    return counts.length === 0 ? undefined : Math.max(...counts);
  }

  /** Replaces the servers by those of a new file. Those that are the same stay connected. */
  setServers(servers: readonly Server[]): void {
    const serving = servers.filter(({ serves }) => serves);
    const before = this.#servers;
    const first = Math.floor(this.#firstShare * serving.length);
    const inOrder = [...serving.slice(first), ...serving.slice(0, first)];
    this.#servers = inOrder.map(
      (server) => before.find((one) => JSON.stringify(one.server) === JSON.stringify(server)) ?? this.#connect(server),
    );
    for (const server of before.filter((one) => !this.#servers.includes(one))) {
      this.#retired.add(server);
      this.#unusable.delete(server.server.name);
    }
    const byRange = Map.groupBy(this.#servers, ({ server }) => server.partitions?.first ?? 0);
    this.#ranges = [...byRange].sort(([one], [other]) => one - other).map(([, mirrors]) => mirrors);
  }

  async choose(failed: ReadonlySet<string>, preferred = ''): Promise<Store> {
    for (;;) {
      const ranges = this.#ranges;
      const choice = await this.#chooseNow(failed, preferred).catch((error: Error) => error);
      // Nothing is chosen by a file that has been replaced meanwhile.
      if (ranges !== this.#ranges) continue;
      if (choice instanceof Error) throw choice;
      return choice;
    }
  }

  async #chooseNow(failed: ReadonlySet<string>, preferred: string): Promise<Store> {
    this.#keepPolled();
    await firstAnswers(this.#ranges);
    const failing = new Set([...failed].flatMap(serverNames));
    const names = serverNames(preferred);
    // A mirror that lags is better than the same servers once more.
    for (const lagMsMax of [this.#limits.lagMsMax, Number.POSITIVE_INFINITY]) {
      const chosen = await Promise.all(
        this.#ranges.map((mirrors) => this.#chooseOther(mirrors, failing, names, lagMsMax)),
      );
      if (failing.size > 0 && chosen.every(({ server }) => failing.has(server.name))) continue;
      // What is preferred is preferred for this time alone.
      this.#before = chosen.map(({ server: { name } }, range) => (names.includes(name) && this.#before[range]) || name);
      return this.#storeOf(chosen);
    }
    throw new ConnectionFailure('there is no other server');
  }

  /**
   * Chooses another server than those that are failing. It is not known which of several servers has failed: where a range has no
   * other one that lags by no more than `lagMsMax`, the same is chosen again.
   */
  async #chooseOther(
    mirrors: Mirrors,
    failing: ReadonlySet<string>,
    preferred: readonly string[],
    lagMsMax: number,
  ): Promise<PolledServer> {
    const isOne = this.#ranges.length === 1 || mirrors.every(({ server }) => !failing.has(server.name));
    if (isOne) return await this.#chooseOf(mirrors, failing, preferred);
    const other = await this.#chooseOf(mirrors, failing, preferred).catch(() => undefined);
    const freshestMs = Math.min(...mirrors.filter(({ isAway }) => !isAway).map(({ behindMs }) => behindMs));
    const isFresh = other !== undefined && other.behindMs - freshestMs <= lagMsMax;
    return isFresh ? other : await this.#chooseOf(mirrors, new Set(), preferred);
  }

  /** @throws {ConnectionFailure} when none can be read */
  async #chooseOf(mirrors: Mirrors, failing: ReadonlySet<string>, preferred: readonly string[]): Promise<PolledServer> {
    const failed = new Set(failing);
    for (let isLast = false; ; ) {
      const choice = this.#choiceOf(mirrors, failed, preferred);
      const chosen = 'name' in choice ? mirrors.find(({ server }) => server.name === choice.name) : undefined;
      if (!chosen) {
        const others = mirrors.filter(({ server }) => !failing.has(server.name));
        if (isLast || !(await anyAnswers(others))) {
          throw new ConnectionFailure('reason' in choice ? choice.reason : 'there is no other server');
        }
        isLast = true;
        for (const { server } of others) failed.delete(server.name);
        continue;
      }
      const state = await chosen.state().catch(() => undefined);
      if (state && this.#whyUnusable(chosen) === undefined) return chosen;
      failed.add(chosen.server.name);
    }
  }

  /** The name of the server whose consumer group is that from before there was a file, if it has everything. */
  get unnamed(): string | undefined {
    if (this.#ranges.length > 1) return undefined;
    return this.#servers.find(({ server }) => server.group === this.#options.firstGroup)?.server.name;
  }

  readable(name: string): Store | undefined {
    this.#keepPolled();
    const names = serverNames(name);
    const chosen = this.#ranges.flatMap((mirrors) => {
      const server = mirrors.find((one) => names.includes(one.server.name));
      if (!server) return [];
      const choice = chooseServer(this.#statusesOf(mirrors), server.server.name, this.#limits);
      return 'name' in choice && choice.name === server.server.name ? [server] : [];
    });
    return chosen.length === names.length && chosen.length === this.#ranges.length ? this.#storeOf(chosen) : undefined;
  }

  /** Returns why nothing can be read, as phrases; empty while something can. */
  async missing(): Promise<string[]> {
    const chosen = await this.choose(new Set()).catch((error: Error) => error);
    return chosen instanceof Error ? [`no ClickHouse server can be read: ${chosen.message}`] : [];
  }

  /** Looks how each server is, also while no requests come. */
  async look(): Promise<readonly ServerReading[]> {
    const servers = this.#servers;
    const responds = await Promise.all(servers.map((server) => server.respondsWithin(ANSWER_MS_MAX)));
    return this.#statusesOf(servers).map(({ name, unusable, answers, behindMs }, index) => {
      const isThere = answers && responds[index] === true;
      const reason = unusable ?? (isThere ? undefined : 'does not respond');
      return {
        ...{ name, reason },
        behindSeconds: isThere && Number.isFinite(behindMs) ? behindMs / 1_000 : undefined,
        replication: isThere ? servers[index]?.lastState?.replication : undefined,
        isChosen: reason === undefined && this.#before.includes(name),
      };
    });
  }

  /** Returns the servers that can be read now, however far behind Kafka they are. Looks also while no requests come. */
  async usable(): Promise<readonly Server[]> {
    const servers = this.#servers;
    const responds = await Promise.all(servers.map((server) => server.respondsWithin(ANSWER_MS_MAX)));
    const usable = servers.filter((server, index) => responds[index] && this.#whyUnusable(server) === undefined);
    return usable.map(({ server }) => server);
  }

  get #limits() {
    const { READ_LAG_MS_MAX: lagMsMax, READ_STALE_MS_MAX: staleMsMax } = this.#options.config;
    return { lagMsMax, staleMsMax, isOfRange: this.#ranges.length > 1, areReplicas: this.#options.areReplicas };
  }

  /** Polls pause while nobody asks. */
  #keepPolled(): void {
    for (const server of this.#servers) server.keepPolled();
  }

  /** Chooses a preferred server if one can be read, otherwise the one that was read before if that can be. */
  #choiceOf(mirrors: Mirrors, failed: ReadonlySet<string>, preferred: readonly string[]): Choice {
    const nameIn = (names: readonly string[]) => mirrors.find(({ server }) => names.includes(server.name))?.server.name;
    const [first, before] = [nameIn(preferred), nameIn(this.#before)];
    const statuses = this.#statusesOf(mirrors).map((status) =>
      failed.has(status.name) ? { ...status, unusable: status.unusable ?? 'has failed', answers: false } : status,
    );
    const choice = chooseServer(statuses, first ?? before, this.#limits);
    const isFirst = first === undefined || ('name' in choice && choice.name === first);
    return isFirst ? choice : chooseServer(statuses, before, this.#limits);
  }

  #connect(server: Server): PolledServer {
    const { connect, poll } = this.#options;
    const connected = new PolledServer({
      ...{ server, reader: connect(server), poll },
      onState: ({ server: { name } }, { recentDeletions, unlistedMs }) =>
        this.#recent.add(name, recentDeletions, unlistedMs),
    });
    connected.start();
    return connected;
  }

  #statusesOf(servers: readonly PolledServer[]): ServerStatus[] {
    return servers.map((server) => ({
      name: server.server.name,
      unusable: this.#whyUnusable(server),
      answers: !server.isAway && server.failure === undefined && server.lastState !== undefined,
      isIncomplete: server.lastState?.identity?.state === 'incomplete',
      behindMs: server.behindMs,
    }));
  }

  #whyUnusable(server: PolledServer): string | undefined {
    const lastPartition = this.#ranges.at(-1)?.[0]?.server.partitions?.last;
    return whyUnusable(server, { migrations: this.#migrations, lastPartition });
  }

  #storeOf(chosen: readonly PolledServer[]): Store {
    const { login, fastSets, identities, areReplicas, readDeletedWithUsers } = this.#options;
    const keptFrom = (workspace: string) => keptFromOf([...this.#servers, ...this.#retired.servers], workspace);
    const givenUp = this.#givenUp.of(chosen.map((server) => server.givenUp));
    const known = { fastSets, identities, areReplicas, readDeletedWithUsers };
    return storeOf(chosen, { recentDeletions: this.#recent, keptFrom, ...known, login, givenUp });
  }

  /**
   * Gives up those whose polls fail while a mirror responds, and those that are silent while one can be read instead: a slow
   * server is better than none. Logs what has changed.
   */
  #look(): void {
    this.#retired.look();
    for (const mirrors of this.#ranges) {
      for (const server of mirrors) {
        const since = server.isAway ? undefined : server.silentSince;
        const isFailing = server.failure !== undefined;
        const others = mirrors.filter((one) => one !== server && since !== undefined && one.hasAnsweredSince(since));
        if (others.length > 0 && (isFailing || this.#isReadable(others, mirrors))) {
          server.giveUp();
          this.#options.onGivenUp(server.server.name);
        }
        this.#logChange(server);
      }
    }
  }

  /** Whether one of some mirrors would be read if the others were gone. One that is being filled would not. */
  #isReadable(some: Mirrors, mirrors: Mirrors): boolean {
    const gone = mirrors.filter((one) => !some.includes(one)).map(({ server: { name } }) => name);
    return 'name' in this.#choiceOf(mirrors, new Set(gone), []);
  }

  #logChange(server: PolledServer): void {
    const { name } = server.server;
    if (!server.lastState && server.failure === undefined) return;
    const [reason, before] = [this.#whyUnusable(server), this.#unusable.get(name)];
    if (reason === before) return;
    this.#unusable.set(name, reason);
    if (reason === undefined) this.#options.logger.info({ server: name }, 'a ClickHouse server can be read again');
    else
      this.#options.logger.warn({ server: name, reason, error: server.failure }, 'a ClickHouse server cannot be read');
  }
}

/**
 * Waits for servers that have not answered yet, after a start or a change of the file. Nobody is preferred only because it has
 * answered first. One that does not answer is not waited for long, unless nothing is known of its mirrors either.
 */
export async function firstAnswers(ranges: readonly (readonly PolledServer[])[]): Promise<void> {
  const unknown = ranges.flat().filter((server) => !isKnown(server));
  if (unknown.length === 0) return;
  const answers = Promise.allSettled(unknown.map((server) => server.state()));
  await atMost(
    ANSWER_MS_MAX,
    answers.then(() => undefined),
  );
  const silent = ranges.filter((mirrors) => !mirrors.some(isKnown));
  await Promise.all(
    silent.map((mirrors) => Promise.race(mirrors.map((server) => server.state().catch(() => undefined)))),
  );
}

/**
 * Returns whether any of some servers answers a poll in time, also one that was given up: a busy server may have been silent when
 * another one fails.
 */
export async function anyAnswers(servers: readonly PolledServer[]): Promise<boolean> {
  let answers = false;
  // The poll that is under way may have begun before the server came back.
  const polls = servers.map((server) => server.state().catch(() => server.state()));
  const any = Promise.any(polls).then(
    () => {
      answers = true;
    },
    () => undefined,
  );
  await atMost(ANSWER_MS_MAX, any);
  return answers;
}

function isKnown({ lastState, failure }: PolledServer): boolean {
  return lastState !== undefined || failure !== undefined;
}

/** Gives the same signal for the same signals as before: each of these would keep a new one for as long as it lasts. */
export class AnySignal {
  #signals: readonly AbortSignal[] = [];
  #any: AbortSignal | undefined;

  /** Returns a signal that aborts when any of some signals does. */
  of(signals: readonly AbortSignal[]): AbortSignal {
    const [first] = signals;
    if (first && signals.length === 1) return first;
    const isSame = signals.length === this.#signals.length && signals.every((one, at) => one === this.#signals[at]);
    this.#any = isSame && this.#any ? this.#any : AbortSignal.any([...signals]);
    this.#signals = signals;
    return this.#any;
  }
}

/**
 * Returns from which time on events of a workspace are shown, in milliseconds since 1970; undefined: all. An event has expired
 * as soon as it has on any server: it must not come back when another one is read.
 */
export function keptFromOf(servers: readonly PolledServer[], workspace: string): number | undefined {
  const days = servers.flatMap(({ lastState }) => {
    const own = lastState?.retentionDays.get(workspace) ?? lastState?.retentionDays.get(ALL_OTHERS);
    return own === undefined ? [] : [own];
  });
  return days.length === 0 ? undefined : keptFromMs(Math.min(...days), Date.now());
}

/** For how long requests go on reading a server that is out of the file, in milliseconds. */
const RETIRED_MS = 60_000;

/** Servers that are out of the file. No request begins to read them; those that have begun go on for a minute at most. */
export class RetiredServers {
  readonly #timers = new Map<PolledServer, NodeJS.Timeout>();

  get servers(): readonly PolledServer[] {
    return [...this.#timers.keys()];
  }

  add(server: PolledServer): void {
    this.#timers.set(
      server,
      setTimeout(() => void this.#end(server), RETIRED_MS),
    );
  }

  /** Ends those that do not respond: nobody waits for them any longer. */
  look(): void {
    for (const server of this.servers) if (server.isAway || server.silentSince !== undefined) void this.#end(server);
  }

  async stop(): Promise<void> {
    await Promise.all(this.servers.map((server) => this.#end(server)));
  }

  async #end(server: PolledServer): Promise<void> {
    clearTimeout(this.#timers.get(server));
    this.#timers.delete(server);
    server.giveUp();
    await server.stop();
  }
}

export interface Expected {
  /** How many migrations this version knows. */
  readonly migrations: number;
  /** The last partition of the ranges of all servers; undefined where they have all partitions. */
  readonly lastPartition: number | undefined;
}

/** Returns why a server cannot be read; `undefined` when it can. */
export function whyUnusable(
  { isAway, failure, lastState, server }: PolledServer,
  expected: Expected,
): string | undefined {
  if (isAway) return 'does not respond';
  if (!lastState) return failure === undefined ? 'has not answered yet' : 'cannot be reached';
  const { identity, migrations, isTooNew, partitionCount } = lastState;
  if (isTooNew) return 'has the tables of a newer version';
  if (migrations < expected.migrations) return 'does not have the tables of this version yet';
  if (!identity) return 'no writer has stored into it yet';
  if (identity.server !== '' && identity.server !== server.name) return `is the server ${identity.server}`;
  const partitions = describeRange(server.partitions);
  if (identity.partitions !== partitions) return `stores the partitions ${identity.partitions}, not ${partitions}`;
  if (identity.state === 'filling') return 'is being filled';
  const { lastPartition: last } = expected;
  const isEnd = last === undefined || partitionCount === undefined || partitionCount === last + 1;
  return isEnd ? undefined : `has ${partitionCount} partitions, and the file those up to ${last}`;
}
