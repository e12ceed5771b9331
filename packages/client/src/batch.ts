import type { QueuedCall } from './calls.ts';

/** Smaller bodies gain nothing by compression. */
const GZIP_CHARACTERS_MIN = 1_024;

/** A call in the queue. */
export interface Entry extends QueuedCall {
  /** The size of its JSON. */
  readonly bytes: number;
  /** Whether it is sent without waiting for a full batch. */
  isDue?: boolean;
  isInFlight?: boolean;
}

export function createEntry(call: QueuedCall): Entry {
  return { ...call, bytes: new TextEncoder().encode(call.text).length };
}

export function isWaiting({ isInFlight }: Entry): boolean {
  return !isInFlight;
}

export function bytesOf(calls: readonly Entry[]): number {
  return calls.reduce((sum, { bytes }) => sum + bytes, 0);
}

/** Returns how many of the first calls have `bytesMax` bytes at most together, with a comma each. */
export function fitting(calls: readonly Entry[], bytesMax: number): number {
  let left = bytesMax;
  return calls.filter(({ bytes }) => {
    left -= bytes + 1;
    return left >= 0;
  }).length;
}

/** The body of `POST /v1/batch`. */
export function batchBody(calls: readonly Entry[]): string {
  return `{"batch":[${calls.map(({ text }) => text)}]}`;
}

/** Compresses a body where that is worth it, and possible. The service recognises gzip without a header. */
export async function compress(text: string): Promise<string | ArrayBuffer> {
  if (text.length < GZIP_CHARACTERS_MIN || !globalThis.CompressionStream) return text;
  return await new Response(new Response(text).body?.pipeThrough(new CompressionStream('gzip'))).arrayBuffer();
}

/** What the service responds: the members of a success, or of a problem. */
export interface Answer {
  /** Whether the service has every call but those in `rejected`. A status of 200 may be a proxy's. */
  readonly success?: boolean;
  readonly rejected?: readonly { readonly index: number; readonly message: string }[];
  /** Or why there is no response. */
  readonly message?: unknown;
}
