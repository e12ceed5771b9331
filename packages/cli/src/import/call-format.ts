import { crc32 } from 'node:zlib';
import { z } from 'zod';
import type { Batch, Format, Gatherer, LineContent, LineToSend } from './format.ts';
import { FatalResponse } from './sender.ts';

/** Calls of one request. The service names up to 1,000 rejected calls in a response, so each of these is named. */
const CALLS_MAX = 500;

/** Bytes of the calls of one request; a larger call is sent alone. */
const BATCH_BYTES_MAX = 1_024 * 1_024;

/** Changes of one user or organization fall into one bucket. The batches of a bucket are sent one after the other. */
const BUCKETS = 16;

/** A batch is sent when this many lines were read since its first one, so that no line waits for the end of the file. */
const HELD_LINES_MAX = 10_000;

/** `/batch/` responds as PostHog does: with a status. */
const responseSchema = z.object({
  success: z.literal(true).optional(),
  status: z.literal(1).optional(),
  rejected: z.array(z.object({ index: z.number(), code: z.string(), message: z.string() })).default([]),
});

/** A format whose lines become calls, which are sent as a batch: all of a format to one path. */
export function callFormat(readLine: (bytes: Buffer, number: number) => LineContent): Format {
  return {
    unit: 'calls',
    readLine,
    createGatherer: () => new CallGatherer(),
    requestOf: (lines) => ({
      path: lines[0].path,
      body: Buffer.concat([
        BODY_START,
        ...lines.flatMap(({ body }, index) => (index === 0 ? body : [COMMA, body])),
        BODY_END,
      ]),
      // Each call has a messageId and a timestamp.
      idempotencyKey: undefined,
    }),
    rejectedIn(response) {
      const { rejected } = parseResponse(response);
      return new Map(rejected.map(({ index, code, message }) => [index, `${code}: ${message}`]));
    },
  };
}

const BODY_START = Buffer.from('{"batch":[');
const COMMA = Buffer.from(',');
const BODY_END = Buffer.from(']}');

function parseResponse(response: string): z.output<typeof responseSchema> {
  try {
    const body = responseSchema.parse(JSON.parse(response));
    if (body.success || body.status) return body;
  } catch {
    // It is no JSON, or has another form.
  }
  throw new FatalResponse('the address is not Sluice (its response to a batch has another form)');
}

/**
 * Gathers calls. A call changes one user (`identify`) or one organization (`group`), never both. Changes of one entity
 * stay in the order of the file: they are in the same batch, or in batches that are sent one after the other. Calls that
 * change nothing are sent in any order.
 */
class CallGatherer implements Gatherer {
  /** By bucket, in the order of their first lines; `undefined` for calls that change nothing. */
  readonly #held = new Map<number | undefined, { lines: LineToSend[]; bytes: number }>();

  add(line: LineToSend): readonly Batch[] {
    const bucket = line.orderKey === undefined ? undefined : crc32(line.orderKey) % BUCKETS;
    const due = this.#overdue(line.number);
    const bytes = this.#held.get(bucket)?.bytes ?? 0;
    if (bytes + line.body.length > BATCH_BYTES_MAX) due.push(...this.#take(bucket));
    const batch = this.#held.get(bucket) ?? { lines: [], bytes: 0 };
    this.#held.set(bucket, batch);
    batch.lines.push(line);
    batch.bytes += line.body.length;
    if (batch.lines.length === CALLS_MAX || batch.bytes >= BATCH_BYTES_MAX) due.push(...this.#take(bucket));
    return due;
  }

  rest(): readonly Batch[] {
    return [...this.#held.keys()].flatMap((bucket) => this.#take(bucket));
  }

  #take(bucket: number | undefined): Batch[] {
    const batch = this.#held.get(bucket);
    this.#held.delete(bucket);
    const [first, ...others] = batch?.lines ?? [];
    if (!batch || !first) return [];
    const orderKey = bucket === undefined ? undefined : String(bucket);
    return [{ lines: [first, ...others], orderKey, bytes: batch.bytes }];
  }

  /** The batch with the oldest line, if that has waited long enough. */
  #overdue(number: number): Batch[] {
    const [oldest] = this.#held;
    if (!oldest) return [];
    const [bucket, { lines }] = oldest;
    return number - (lines[0]?.number ?? number) < HELD_LINES_MAX ? [] : this.#take(bucket);
  }
}
