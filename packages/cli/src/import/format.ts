import type { LineContent, LineToSend } from './line-content.ts';

/** Lines that are sent in one request. */
export interface Batch {
  readonly lines: readonly [LineToSend, ...LineToSend[]];
  /** Batches with the same key are sent one after the other. */
  readonly orderKey: string | undefined;
  readonly bytes: number;
}

/** Holds lines until they are sent together. */
export interface Gatherer {
  /** Takes a line. Returns the batches that are to be sent now, in order. */
  add(line: LineToSend): readonly Batch[];
  /** The batches of all lines that are held. */
  rest(): readonly Batch[];
}

export interface ImportRequest {
  readonly path: string;
  readonly body: Buffer;
  readonly idempotencyKey: string | undefined;
}

/** What the lines of a file are, and how they are sent. */
export interface Format {
  /** What is counted. */
  readonly unit: 'submissions' | 'calls' | 'records';
  /** Whether a complete file ends with a line that says how many lines it has. Default: false. */
  readonly hasTrailer?: boolean;
  readLine(bytes: Buffer, number: number): LineContent;
  createGatherer(): Gatherer;
  requestOf(lines: Batch['lines']): ImportRequest;
  /**
   * The lines of a request that the service rejected although it accepted the request: by position, the reasons.
   *
   * @throws {FatalResponse} when the response is not Sluice's
   */
  rejectedIn(response: string): ReadonlyMap<number, string>;
}
