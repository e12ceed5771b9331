/** A row in Kafka. `at` is the time at which it was accepted, which deletions compare. `key` and `time` identify an event. */
export type Row =
  | {
      readonly kind: 'event';
      readonly key: string;
      readonly time: number;
      readonly at: number;
      readonly user: string;
      /** An insert writes each month as a part of its own. */
      readonly month: number;
      /** The producer sent no timestamp, so `time` is the time of receipt. */
      readonly stamped: boolean;
    }
  | { readonly kind: 'set' | 'deletion'; readonly user: string; readonly at: number }
  | { readonly kind: 'poison'; readonly key: string };

export type EventRow = Extract<Row, { kind: 'event' }>;

export const FAULTS = [
  'a writer is killed',
  'a response is lost',
  'the response to a commit is lost',
  'ClickHouse is killed',
  'partitions move',
  'the group is forgotten',
  'a log is cut off',
] as const;

export type Fault = (typeof FAULTS)[number];

/** The beginning of a world, and the faults that may happen in it. */
export interface Scenario {
  readonly name: string;
  /** The rows of each partition. */
  readonly logs: readonly (readonly Row[])[];
  /** The log of partition 0 loses its rows from offset `keep` on, and grows again with other rows, and more of them. */
  readonly cut?: {
    readonly keep: number;
    readonly rows: readonly Row[];
    /** It grows again only after a writer has noticed the cut, or stored a position. */
    readonly growsLate?: boolean;
    /** Where an operator resumes a halted partition. Default: at its oldest row. */
    readonly resumesAt?: number | 'never';
  };
  /** How many rows of partition 0 an older version has stored and committed, without storing a position. */
  readonly upgraded?: number;
  readonly writers: number;
  /** How many rows a fetch may return. */
  readonly fetchSizes: readonly number[];
  /** The writer of each partition: the first entry at the beginning, any entry whenever partitions move. */
  readonly assignments: readonly (readonly number[])[];
  /** How often each fault may happen. Default: never. */
  readonly faults: Readonly<Partial<Record<Fault, number>>>;
  /** Whether deleted users are erased. */
  readonly erases?: boolean;
  /** The number of its worlds has no limit: only the nearest are visited. */
  readonly endless?: boolean;
}
