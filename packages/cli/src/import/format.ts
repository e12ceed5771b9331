import { parseJson } from '@sluice/shared/text/json';
import { isJsonObject } from '@sluice/submissions/reading/json-object';

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

/** A line to send. */
export interface LineToSend {
  readonly kind: 'line';
  /** Counted from 1. */
  readonly number: number;
  readonly path: string;
  /** What is sent of the line: JSON. */
  readonly body: Buffer;
  readonly events: number;
  /** Lines with the same key set properties of the same entity, so they are sent in order. */
  readonly orderKey: string | undefined;
  /** `undefined` where what is sent tells repeats apart itself. */
  readonly idempotencyKey: string | undefined;
}

export interface RefusedLine {
  readonly kind: 'refused';
  /** A phrase for people. */
  readonly reason: string;
}

/** The last line of a complete file. */
interface TrailerLine {
  readonly kind: 'trailer';
  /** How many lines the file has before it. */
  readonly lines: number;
}

/** The content of a line. */
export type LineContent = LineToSend | RefusedLine | TrailerLine | { readonly kind: 'blank' };

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Parses a line that must hold a JSON object. */
export function readJsonObject(
  bytes: Buffer,
):
  | RefusedLine
  | { readonly kind: 'blank' }
  | { readonly kind: 'object'; readonly value: Readonly<Record<string, unknown>> } {
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch {
    return refused('is not UTF-8');
  }
  if (text.trim() === '') return { kind: 'blank' };
  let value: unknown;
  try {
    value = parseJson(text);
  } catch {
    return refused('is not JSON');
  }
  return isJsonObject(value) ? { kind: 'object', value } : refused('is not a JSON object');
}

export function refused(reason: string): RefusedLine {
  return { kind: 'refused', reason };
}
