import { seededRandom } from '../support/random.ts';

/** What is disturbed: three brokers, the logs on their disks, one ClickHouse, and several of each service. */
export const TARGETS = [
  'ingest-api 1',
  'ingest-api 2',
  'writer 1',
  'writer 2',
  'writer 3',
  'query-api 1',
  'query-api 2',
  'kafka 1',
  'kafka 2',
  'kafka 3',
  'kafka logs',
  'clickhouse',
] as const;

export type Target = (typeof TARGETS)[number];

export type FaultKind =
  /** SIGKILL, and started again after a while. */
  | 'kill'
  /** SIGTERM, and started again after a while: of services only. */
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
  | 'cut off';

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
];

export interface PlannedFault {
  readonly kind: FaultKind;
  readonly target: Target;
  /** From the beginning of the load, in milliseconds. */
  readonly atMs: number;
  readonly lastsMs: number;
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
};

/**
 * Plans the faults and their times. The same seed makes the same plan, and a longer plan begins with a shorter one. Faults
 * of different targets overlap; of the three brokers one is disturbed at a time.
 */
export function planFaults(seed: number, minutes: number): PlannedFault[] {
  const random = seededRandom(seed);
  const between = (from: number, to: number) => Math.round(from + random() * (to - from));
  const oneOf = <Item>(items: readonly Item[]) => items[Math.floor(random() * items.length)] as Item;
  const busyUntil = new Map<string, number>();
  const faults: PlannedFault[] = [];
  for (let atMs = PAUSE_MS.from; ; atMs += between(PAUSE_MS.from, PAUSE_MS.to)) {
    const target = oneOf(TARGETS);
    const kind = oneOf(kindsFor(target));
    const lastsMs = between(kind.startsWith('delay') ? DELAY_MS_MIN : 100, LASTS_MS_MAX[kind]);
    const group = groupOf(target);
    if (atMs + lastsMs > minutes * 60_000) return faults;
    // A broker or a service that was down takes a while to be back.
    if ((busyUntil.get(group) ?? 0) > atMs) continue;
    busyUntil.set(group, atMs + lastsMs + 4_000);
    faults.push({ kind, target, atMs, lastsMs });
  }
}

/** Targets of which one is disturbed at a time. */
export function groupOf(target: Target): string {
  return target.startsWith('kafka') ? 'kafka' : target;
}

function kindsFor(target: Target): readonly FaultKind[] {
  if (target === 'clickhouse') return ['kill', 'freeze', 'cut responses', 'stall responses', 'change profile'];
  if (target === 'kafka logs') return ['cut off'];
  return target.startsWith('kafka') ? ['kill', 'freeze', 'delay fetch', 'delay produce'] : ['kill', 'stop', 'freeze'];
}

export function describeFault({ kind, target, atMs, lastsMs }: PlannedFault): string {
  const seconds = (ms: number) => (ms / 1_000).toFixed(1).padStart(6);
  return `${seconds(atMs)} s  ${kind} ${target} for${seconds(lastsMs)} s`;
}
