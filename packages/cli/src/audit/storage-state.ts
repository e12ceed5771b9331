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
  readonly reason: string;
  readonly detail: string;
  readonly is_resumed: 0 | 1;
  /** In milliseconds since 1970. */
  readonly halted: number;
}

/** Why a partition is halted whose log no longer has what is stored. */
const LOST: readonly string[] = ['the log was cut off', 'the log is another one'];

/** What the database says of the writers, at one moment. */
export interface StorageState {
  /** The offset up to which a partition of a topic is stored; 0 where nothing is. */
  storedUpTo(role: TopicRole, partition: number): number;
  /** When an operator gave up the message at an offset; `undefined`: nobody did. */
  givenUpAt(role: TopicRole, partition: number, offset: number): string | undefined;
  /** The begin of the time from which events of a workspace are kept, in milliseconds since 1970. */
  keptFromMs(workspace: string): number;
  /** When the writers noticed that the log of a partition had lost records, in milliseconds since 1970; 0: never. */
  lostAtMs(role: TopicRole, partition: number): number;
  /** What of it has to be said. */
  readonly notes: readonly string[];
}

/** @throws ClickHouse's errors */
export async function readStorageState(database: Database, group: string, topics: Topics): Promise<StorageState> {
  const positions = new Map<string, number>();
  type Position = { readonly topic: string; readonly partition: number; readonly next: string };
  for (const { topic, partition, next } of await database.read<Position>('read-positions', { group })) {
    positions.set(`${topic}/${partition}`, Number(next));
  }
  const givenUp = await database.read<GivenUp>('read-given-up', { group });
  const halts = await database.read<HaltRow>('read-halts', { group });
  const retention = await database.read<{ workspace: string; days: number }>('read-retention');
  const [clock] = await database.read<{ now: number }>('read-clock');
  const kept = new Map(retention.map(({ workspace, days }) => [workspace, keptFromMs(days, clock?.now ?? Date.now())]));
  const own = new Set(Object.values(topics));
  const active = halts.filter(({ topic, is_resumed }) => own.has(topic) && !is_resumed);
  const gone = halts.filter(({ topic, is_resumed, reason }) => own.has(topic) && is_resumed && reason !== 'by hand');
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
      halts.find((one) => one.topic === topics[role] && one.partition === partition && LOST.includes(one.reason))
        ?.halted ?? 0,
    keptFromMs: (workspace) => kept.get(workspace) ?? kept.get(ALL_OTHERS) ?? BEFORE_EVENTS_MS,
    notes: [
      ...active.map(({ topic, partition, detail }) => `${topic}/${partition} is halted: ${detail}.`),
      ...gone.map(({ topic, partition, detail }) => `${topic}/${partition} was halted, and resumed since: ${detail}.`),
    ],
  };
}
