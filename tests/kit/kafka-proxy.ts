import { setTimeout as delay } from 'node:timers/promises';
import { type Fate, startTcpProxy } from './tcp-proxy.ts';

/** The API keys of Kafka's protocol that the tests tell apart. */
export const KAFKA_API = {
  produce: 0,
  fetch: 1,
  listOffsets: 2,
  offsetCommit: 8,
  findCoordinator: 10,
  joinGroup: 11,
  heartbeat: 12,
  syncGroup: 14,
} as const;

/**
 * What happens to a response. `{ delayMs }` delivers it that much later, `{ until }` when the promise resolves.
 * `{ errorCode }` delivers it with this error, if it begins with a throttle time and an error code, as the responses to
 * FindCoordinator and JoinGroup do. `{ failed }` delivers it with an error for one partition, see {@link failPartition}.
 */
export type KafkaFate =
  | Fate
  | { readonly delayMs: number }
  | { readonly until: Promise<unknown> }
  | { readonly errorCode: number }
  | { readonly failed: { readonly topic: string; readonly partition: number; readonly errorCode: number } };

/** Where the error code of such a response is: after its length, correlation id and throttle time, in four bytes each. */
const ERROR_CODE_AT = 12;

/** A proxy in front of one broker that can lose responses: the broker has done its work, and the client does not know. */
export interface KafkaProxy extends AsyncDisposable {
  readonly port: number;
}

/**
 * Starts a proxy in front of the broker that listens, or will listen, on `brokerPort`. The broker has to advertise the
 * proxy's port.
 *
 * @param decide called for each response, in the order of its connection, with the API key of the request, the size of
 *   the response in bytes, and the client's name
 * @param reaches called for each request, with its API key and the client's name; false drops it, so that it gets no response
 */
export async function startKafkaProxy(
  brokerPort: number,
  decide: (api: number, bytes: number, clientId: string) => KafkaFate,
  reaches: (api: number, clientId: string) => boolean = () => true,
): Promise<KafkaProxy> {
  const proxy = await startTcpProxy({ host: '127.0.0.1', port: brokerPort }, (client, upstream) => {
    const pending = new Map<number, { api: number; clientId: string }>();
    const requests = frameReader();
    const responses = frameReader();
    let stalled = false;
    let delivery = Promise.resolve();

    async function deliver(frame: Buffer): Promise<void> {
      const correlationId = frame.readInt32BE(4);
      const { api, clientId } = pending.get(correlationId) ?? { api: -1, clientId: '' };
      pending.delete(correlationId);
      if (client.destroyed || stalled) return;
      const fate = decide(api, frame.length, clientId);
      if (typeof fate === 'object') {
        if ('until' in fate) await fate.until;
        else if ('delayMs' in fate) await delay(fate.delayMs);
        else if ('failed' in fate) failPartition(frame, api, fate.failed);
        else frame.writeInt16BE(fate.errorCode, ERROR_CODE_AT);
      }
      if (fate === 'deliver' || typeof fate === 'object') {
        client.write(frame);
        return;
      }
      if (fate === 'cut') client.destroy();
      else stalled = true;
    }

    client.on('data', (chunk: Buffer) => {
      // Length, API key and version, correlation id, client id.
      for (const frame of requests(chunk)) {
        const api = frame.readInt16BE(4);
        const clientId = clientIdOf(frame);
        pending.set(frame.readInt32BE(8), { api, clientId });
        if (reaches(api, clientId)) upstream.write(frame);
      }
    });
    upstream.on('data', (chunk: Buffer) => {
      for (const frame of responses(chunk)) delivery = delivery.then(() => deliver(frame));
    });
  });
  return {
    port: proxy.port,
    [Symbol.asyncDispose]: proxy.stop,
  };
}

/** Splits a stream of bytes into frames: a length in four bytes, and as many bytes. */
function frameReader(): (chunk: Buffer) => Buffer[] {
  let rest: Buffer = Buffer.alloc(0);
  return (chunk) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    const frames: Buffer[] = [];
    while (rest.length >= 4 && rest.length >= 4 + rest.readInt32BE(0)) {
      const length = 4 + rest.readInt32BE(0);
      frames.push(rest.subarray(0, length));
      rest = rest.subarray(length);
    }
    return frames;
  };
}

/**
 * Gives a partition an error, in a response to ListOffsets (version 3) or Fetch (version 11), which are the newest that
 * kafkajs knows.
 */
function failPartition(
  frame: Buffer,
  api: number,
  failed: { topic: string; partition: number; errorCode: number },
): void {
  // Behind the throttle time; Fetch has an error code and a session there.
  let at = api === KAFKA_API.fetch ? ERROR_CODE_AT + 6 : ERROR_CODE_AT;
  const readInt32 = () => {
    at += 4;
    return frame.readInt32BE(at - 4);
  };
  for (let topics = readInt32(); topics > 0; topics -= 1) {
    const length = frame.readInt16BE(at);
    const topic = frame.toString('utf8', at + 2, at + 2 + length);
    at += 2 + length;
    for (let partitions = readInt32(); partitions > 0; partitions -= 1) {
      const partition = readInt32();
      if (topic === failed.topic && partition === failed.partition) frame.writeInt16BE(failed.errorCode, at);
      at += 2;
      // A time and an offset, or three offsets, the aborted transactions, the preferred replica, and the records.
      at += api === KAFKA_API.fetch ? 24 : 16;
      if (api !== KAFKA_API.fetch) continue;
      const aborted = readInt32();
      at += 16 * Math.max(0, aborted) + 4;
      const recordBytes = readInt32();
      at += Math.max(0, recordBytes);
    }
  }
}

/** The client's name in the header of a request. */
function clientIdOf(frame: Buffer): string {
  const length = frame.readInt16BE(12);
  return length < 0 ? '' : frame.toString('utf8', 14, 14 + length);
}
