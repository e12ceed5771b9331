import { seededRandom } from '../random.ts';
import type { ServiceName } from '../service.ts';

/** A service, a broker, the brokers' logs, or a ClickHouse server. Numbers count from 1. */
export type Target = `${ServiceName | 'kafka' | 'server'} ${string}` | 'clickhouse';

/** The ClickHouse servers. */
export interface Topology {
  /** How many ranges the partitions are divided into. */
  readonly shards: number;
  /** How many servers store each range. */
  readonly mirrors: number;
}

/** One ClickHouse server, without a file of servers. */
export const ONE_SERVER: Topology = { shards: 1, mirrors: 1 };

const INGEST_APIS: readonly Target[] = ['ingest-api 1', 'ingest-api 2'];
const BROKERS: readonly Target[] = ['kafka 1', 'kafka 2', 'kafka 3'];

/** Three brokers, the logs on their disks, one ClickHouse, and several of each service. */
const TARGETS_OF_ONE: readonly Target[] = [
  ...INGEST_APIS,
  ...(['writer 1', 'writer 2', 'writer 3', 'query-api 1', 'query-api 2'] as const),
  ...BROKERS,
  ...(['kafka logs', 'clickhouse'] as const),
];

export type FaultKind =
  /** SIGKILL, and started again after a while. */
  | 'kill'
  /** SIGTERM, and started again after a while: of services, and of ClickHouse servers where there are several. */
  | 'stop'
  /** SIGSTOP, and SIGCONT after a while. */
  | 'freeze'
  /** Some responses of ClickHouse are cut off for a while. */
  | 'cut responses'
  /** Some responses of ClickHouse do not come for a while, and the connection stays open. */
  | 'stall responses'
  /** ClickHouse's account has another profile for a while. */
  | 'change profile'
  /** One response of a broker to a fetch of a writer is delayed. */
  | 'delay fetch'
  /** One response of a broker to a send of an ingest-api is delayed. */
  | 'delay produce'
  /** All brokers are killed, a partition of the events loses its newest messages, and after a while it is resumed. */
  | 'cut off'
  /** A ClickHouse server is killed, loses its disk, and is copied from its mirror: of servers that have one only. */
  | 'wipe';

export const FAULT_KINDS: readonly FaultKind[] = [
  'kill',
  'stop',
  'freeze',
  'cut responses',
  'stall responses',
  'change profile',
  'delay fetch',
  'delay produce',
  'cut off',
  'wipe',
];

/** How the writers of a wiped server end. Frozen ones go on later, as on a machine that was suspended. */
const WRITERS_END = ['stop', 'kill', 'freeze'] as const;

/** What is killed while a wiped server is copied. */
const KILLED = ['nothing', 'the command', 'the server'] as const;

/** What the command has printed when that is killed. */
const KILLED_AFTER = ['positions and deletions', 'events 2', 'all other tables'] as const;

/** What happens after a server was wiped. */
export interface WipePlan {
  /** How long its writers run with the empty server, in milliseconds. */
  readonly unnoticedMs: number;
  readonly writersEnd: (typeof WRITERS_END)[number];
  /** How long frozen writers are frozen, in milliseconds. */
  readonly frozenMs: number;
  readonly killed: (typeof KILLED)[number];
  readonly killedAfter: (typeof KILLED_AFTER)[number];
}

export interface PlannedFault {
  readonly kind: FaultKind;
  readonly target: Target;
  /** From the beginning of the load, in milliseconds. */
  readonly atMs: number;
  readonly lastsMs: number;
  /** What a `wipe` does; absent for other faults. */
  readonly wipe?: WipePlan;
}

/** A session of the writers' group is over after 6 s: a delay is to be long, and still within it. */
const DELAY_MS_MIN = 3_000;

/** Pauses between two faults, and how long each kind lasts at most, in milliseconds. */
const PAUSE_MS = { from: 500, to: 5_000 };
const LASTS_MS_MAX: Record<FaultKind, number> = {
  kill: 5_000,
  stop: 3_000,
  freeze: 15_000,
  'cut responses': 8_000,
  'stall responses': 8_000,
  'change profile': 10_000,
  'delay fetch': 4_000,
  'delay produce': 4_000,
  'cut off': 8_000,
  wipe: 5_000,
};

/** What was down takes a while to be back; a wiped server takes as long as its copy, in milliseconds. */
const BACK_MS = 4_000;
const COPIED_MS = 20_000;

/** The longest times of a {@link WipePlan}, in milliseconds. */
const UNNOTICED_MS_MAX = 3_000;
const FROZEN_MS_MAX = 20_000;

/**
 * Plans the faults and their times. The same seed makes the same plan, and a longer plan begins with a shorter one. Faults
 * of different targets overlap; of the three brokers, and of the servers of one range, one is disturbed at a time.
 */
export function planFaults(seed: number, minutes: number, topology = ONE_SERVER): PlannedFault[] {
  const random = seededRandom(seed);
  const between = (from: number, to: number) => Math.round(from + random() * (to - from));
  const oneOf = <Item>(items: readonly Item[]) => items[Math.floor(random() * items.length)] as Item;
  const targets = targetsOf(topology);
  const busyUntil = new Map<string, number>();
  const faults: PlannedFault[] = [];
  for (let atMs = PAUSE_MS.from; ; atMs += between(PAUSE_MS.from, PAUSE_MS.to)) {
    const target = oneOf(targets);
    const kind = oneOf(kindsFor(target, topology));
    const lastsMs = between(kind.startsWith('delay') ? DELAY_MS_MIN : 100, LASTS_MS_MAX[kind]);
    const groups = groupsOf({ kind, target });
    if (atMs + lastsMs > minutes * 60_000) return faults;
    if (groups.some((group) => (busyUntil.get(group) ?? 0) > atMs)) continue;
    for (const group of groups) busyUntil.set(group, atMs + lastsMs + (kind === 'wipe' ? COPIED_MS : BACK_MS));
    const wipe: WipePlan | undefined =
      kind === 'wipe'
        ? {
            ...{ unnoticedMs: between(0, UNNOTICED_MS_MAX), writersEnd: oneOf(WRITERS_END) },
            ...{ frozenMs: between(0, FROZEN_MS_MAX), killed: oneOf(KILLED), killedAfter: oneOf(KILLED_AFTER) },
          }
        : undefined;
    faults.push({ kind, target, atMs, lastsMs, ...(wipe && { wipe }) });
  }
}

export function isOneServer({ shards, mirrors }: Topology): boolean {
  return shards * mirrors === 1;
}

/** Returns the names of the servers of each range: `a1` and `a2` are mirrors. */
export function serverNames({ shards, mirrors }: Topology): string[][] {
  return Array.from({ length: shards }, (_, shard) =>
    Array.from({ length: mirrors }, (_, mirror) => `${String.fromCharCode('a'.charCodeAt(0) + shard)}${mirror + 1}`),
  );
}

/** Returns the writers of a server. The first of the mirrors has two, so that one takes over from the other. */
export function writersOf(server: string): Target[] {
  return server.endsWith('1') ? [`writer ${server} 1`, `writer ${server} 2`] : [`writer ${server} 1`];
}

/** What may be disturbed. A log that is cut off would leave mirrors different, and a query-api that ends fails requests. */
function targetsOf(topology: Topology): readonly Target[] {
  if (isOneServer(topology)) return TARGETS_OF_ONE;
  const servers = serverNames(topology).flat();
  const disturbed = servers.map((server): Target => `server ${server}`);
  // Servers twice: many of their faults come while another one of the range is disturbed, and are left out.
  return [...INGEST_APIS, ...BROKERS, ...disturbed, ...disturbed, ...servers.flatMap(writersOf)];
}

/** Returns what a fault takes for itself: other faults of the same wait until it is over. */
export function groupsOf({ kind, target }: Pick<PlannedFault, 'kind' | 'target'>): readonly string[] {
  if (target.startsWith('kafka')) return ['kafka'];
  const [, server] = /^server (.*)/.exec(target) ?? [];
  if (server === undefined) return [target];
  const range = `servers ${server.charAt(0)}`;
  return kind === 'wipe' ? [range, ...writersOf(server)] : [range];
}

function kindsFor(target: Target, { mirrors }: Topology): readonly FaultKind[] {
  if (target === 'clickhouse') return ['kill', 'freeze', 'cut responses', 'stall responses', 'change profile'];
  if (target === 'kafka logs') return ['cut off'];
  if (target.startsWith('server') && mirrors > 1) return ['kill', 'stop', 'freeze', 'wipe'];
  return target.startsWith('kafka') ? ['kill', 'freeze', 'delay fetch', 'delay produce'] : ['kill', 'stop', 'freeze'];
}

export function describeFault({ kind, target, atMs, lastsMs, wipe }: PlannedFault): string {
  const seconds = (ms: number) => (ms / 1_000).toFixed(1).padStart(6);
  const then = wipe ? `; writers: ${wipe.writersEnd}; during the copy ${wipe.killed} is killed` : '';
  return `${seconds(atMs)} s  ${kind} ${target} for${seconds(lastsMs)} s${then}`;
}
