import { ALL_OTHERS, BEFORE_EVENTS_MS, keptFromMs } from '@sluice/shared/config/retention-days';
import type { Database } from './database.ts';
import type { TopicRole, Topics } from './topic-logs.ts';

/** Messages that an operator gave up when a halted partition was resumed. */
interface GivenUp {
  readonly topic: string;
  readonly partition: number;
  readonly first: string;
  readonly last: string;
  readonly at: string;
}

interface HaltRow {
  readonly topic: string;
  readonly partition: number;
  readonly detail: string;
}

/** A gap between the log of a partition and what is stored. */
interface GapRow extends HaltRow {
  readonly reason: string;
  /** In milliseconds since 1970. */
  readonly noticed: number;
}

/** The gaps where a log no longer has what is stored. */
const LOST: readonly string[] = ['the log was cut off', 'the log is another one'];

/** What the database says of the writers, at one moment. */
export interface StorageState {
  /** The offset up to which a partition of a topic is stored; 0 where nothing is. */
  storedUpTo(role: TopicRole, partition: number): number;
  /** When an operator gave up the message at an offset; `undefined`: nobody did. */
  givenUpAt(role: TopicRole, partition: number, offset: number): string | undefined;
  /** The begin of the time from which events of a workspace are kept, in milliseconds since 1970. */
  keptFromMs(workspace: string): number;
  /** When the writers noticed last that the log of a partition had lost records, in milliseconds since 1970; 0: never. */
  lostAtMs(role: TopicRole, partition: number): number;
  /** What of it has to be said. */
  readonly notes: readonly string[];
}

/**
 * @param sinceMs the begin of the window: what was noticed before has to be said no more
 * @throws ClickHouse's errors
 */
export async function readStorageState(
  database: Database,
  { group, topics, sinceMs }: { readonly group: string; readonly topics: Topics; readonly sinceMs: number },
): Promise<StorageState> {
  const positions = new Map<string, number>();
  type Position = { readonly topic: string; readonly partition: number; readonly next: string };
  for (const { topic, partition, next } of await database.read<Position>('read-positions', { group })) {
    positions.set(`${topic}/${partition}`, Number(next));
  }
  const givenUp = await database.read<GivenUp>('read-given-up');
  const own = new Set(Object.values(topics));
  const isOwn = ({ topic }: HaltRow) => own.has(topic);
  const halts = (await database.read<HaltRow>('read-halts', { group })).filter(isOwn);
  const gaps = (await database.read<GapRow>('read-gaps', { group })).filter(isOwn);
  const retention = await database.read<{ workspace: string; days: number }>('read-retention');
  const [clock] = await database.read<{ now: number }>('read-clock');
  const kept = new Map(retention.map(({ workspace, days }) => [workspace, keptFromMs(days, clock?.now ?? Date.now())]));
  const isSaid = (gap: GapRow) => halts.some((halt) => halt.topic === gap.topic && halt.detail === gap.detail);
  const ended = gaps.filter((gap) => gap.noticed >= sinceMs && !isSaid(gap));
  return {
    storedUpTo: (role, partition) => positions.get(`${topics[role]}/${partition}`) ?? 0,
    givenUpAt: (role, partition, offset) =>
      givenUp.find(
        (one) =>
          one.topic === topics[role] &&
          one.partition === partition &&
          offset >= Number(one.first) &&
          offset <= Number(one.last),
      )?.at,
    lostAtMs: (role, partition) =>
      gaps.findLast((one) => one.topic === topics[role] && one.partition === partition && LOST.includes(one.reason))
        ?.noticed ?? 0,
    keptFromMs: (workspace) => kept.get(workspace) ?? kept.get(ALL_OTHERS) ?? BEFORE_EVENTS_MS,
    notes: [
      ...halts.map(({ topic, partition, detail }) => `${topic}/${partition} is halted: ${detail}.`),
      ...ended.map(({ topic, partition, detail }) => `${topic}/${partition} was halted, and resumed since: ${detail}.`),
    ],
  };
}
