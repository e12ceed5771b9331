import { type BatchState, type Step, TAKE_OVER_STEPS, type TakeOverStep } from '../../protocol.ts';

/** A row of Kafka. `at` is the time of receipt, which a deletion compares; `key` and `time` identify an event. */
export type Row =
  | {
      readonly kind: 'event';
      readonly key: string;
      readonly time: number;
      readonly at: number;
      readonly user: string;
      /** Each month is written as a part of its own. */
      readonly month: number;
      /** The client gave no time: `time` is that of the receipt. */
      readonly stamped: boolean;
    }
  | { readonly kind: 'set' | 'deletion'; readonly user: string; readonly at: number }
  | { readonly kind: 'poison'; readonly key: string };

export type EventRow = Extract<Row, { kind: 'event' }>;

export const HAZARDS = [
  'a writer is killed',
  'an answer is lost',
  'a commit is not heard of',
  'ClickHouse is killed',
  'partitions move',
  'the group is forgotten',
  'a log is cut off',
] as const;

export type Hazard = (typeof HAZARDS)[number];

/** What a world begins with, and what may go wrong in it. */
export interface Scenario {
  readonly name: string;
  /** For each partition. */
  readonly logs: readonly (readonly Row[])[];
  /** The log of partition 0 loses its rows from offset `keep` on and grows again with others, and more of them. */
  readonly cut?: {
    readonly keep: number;
    readonly rows: readonly Row[];
    /** It grows only after a writer has noticed, or recorded a position. */
    readonly growsLate?: boolean;
    /** Where an operator resumes a halted partition: at its oldest row unless told. */
    readonly resumesAt?: number | 'never';
  };
  /** So many rows of partition 0 were stored and committed by a version that did not record positions. */
  readonly upgraded?: number;
  readonly writers: number;
  /** How many rows a fetch may give. */
  readonly fetchSizes: readonly number[];
  /** The writer of each partition: the first at the beginning, any of them whenever partitions move. */
  readonly assignments: readonly (readonly number[])[];
  /** How often each hazard may happen; otherwise never. */
  readonly hazards: Readonly<Partial<Record<Hazard, number>>>;
  /** Whether deleted users are erased. */
  readonly erases?: boolean;
  /** There is no end to its worlds: only the nearest are visited. */
  readonly endless?: boolean;
}

/** What may be left out or changed, to see that the model notices. */
export interface Variant {
  readonly takeOverSteps: readonly TakeOverStep[];
  /** The step that is taken where the protocol says `step`. */
  readonly performs: (step: Step, state: BatchState) => Step;
  /** Whether the insert leaves out what is stored already. */
  readonly looksUp: boolean;
  /** Whether the insert fails when a newer epoch is recorded. */
  readonly fenced: boolean;
  /** Whether a batch whose state is unclear ends what it has running. */
  readonly endsOwn: boolean;
  /** Whether it closes its session, too, so that nothing can begin in it any more. */
  readonly closesSession: boolean;
  /** Whether rows are stored only in the generation in which they were fetched. */
  readonly dropsStaleFetches: boolean;
  /** Whether a hidden event does not count as an original when repeats are looked for. */
  readonly hidesOriginals: boolean;
  /** Whether a partition is opened only if the last stored record still stands in its log. */
  readonly checksFingerprint: boolean;
  /** Whether the row before the next offset is read when a partition is opened, wherever it goes on. */
  readonly readsRowBefore: boolean;
  /** Whether that row is compared with the log again when the leader epoch of fetched rows rises. */
  readonly checksLeaderEpoch: boolean;
  /** Whether the position is recorded before the commit, not after it. */
  readonly recordsFirst: boolean;
  /** Whether a halt is recorded in ClickHouse. */
  readonly recordsHalt: boolean;
  /** Whether the other partitions go on when one is halted. */
  readonly haltsAlone: boolean;
}

export const PROTOCOL: Variant = {
  takeOverSteps: TAKE_OVER_STEPS,
  performs: (step) => step,
  looksUp: true,
  fenced: true,
  endsOwn: true,
  closesSession: true,
  dropsStaleFetches: true,
  hidesOriginals: true,
  checksFingerprint: true,
  readsRowBefore: true,
  checksLeaderEpoch: true,
  recordsFirst: true,
  recordsHalt: true,
  haltsAlone: true,
};

/** The rules and constants that actions need beside the world. */
export interface Rules {
  readonly scenario: Scenario;
  readonly variant: Variant;
  /** All rows; worlds refer to them by index. */
  readonly rows: readonly Row[];
  /** All users; worlds refer to them by index. */
  readonly users: readonly string[];
  /** From this row on they belong to the log that grew again, under a newer leader epoch. */
  readonly firstRegrown: number;
}

export function createRules(scenario: Scenario, variant: Variant): Rules {
  const { logs, cut } = scenario;
  const before = logs.flat();
  const rows = [...before, ...(cut?.rows ?? [])];
  const users = [...new Set(rows.flatMap((row) => (row.kind === 'poison' ? [] : [row.user])))];
  return { scenario, variant, rows, users, firstRegrown: before.length };
}
