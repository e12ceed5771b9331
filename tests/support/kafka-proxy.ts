import { setTimeout as delay } from 'node:timers/promises';
import { type Fate, startTcpProxy } from './tcp-proxy.ts';

/** The API keys of Kafka's protocol that the tests tell apart. */
export const KAFKA_API = {
  produce: 0,
  fetch: 1,
  offsetCommit: 8,
  joinGroup: 11,
  heartbeat: 12,
  syncGroup: 14,
} as const;

/** What happens to an answer: also `{ delayMs }`, which delivers it that much later, and `{ until }`, once that resolves. */
export type KafkaFate = Fate | { readonly delayMs: number } | { readonly until: Promise<unknown> };

/** A proxy in front of one broker that can lose answers: the broker has done what was asked, the client never hears. */
export interface KafkaProxy extends AsyncDisposable {
  readonly port: number;
  /** How many answers to requests with this API key did not come through. */
  lost(api: number): number;
}

/**
 * Starts a proxy in front of the broker that listens, or will, on `brokerPort`; it has to be the port that the broker
 * advertises. `decide` is asked about every answer, in the order in which a connection has them, and told the API key
 * of its request, how many bytes it has, and the name of the client. `reaches` is asked about every request: one that
 * does not reach the broker is never answered.
 */
export async function startKafkaProxy(
  brokerPort: number,
  decide: (api: number, bytes: number, clientId: string) => KafkaFate,
  reaches: (api: number) => boolean = () => true,
): Promise<KafkaProxy> {
  const lost = new Map<number, number>();

  const proxy = await startTcpProxy({ host: '127.0.0.1', port: brokerPort }, (client, upstream) => {
    const asked = new Map<number, { api: number; clientId: string }>();
    const requests = frameReader();
    const answers = frameReader();
    let stalled = false;
    let delivery = Promise.resolve();

    async function deliver(frame: Buffer): Promise<void> {
      const correlationId = frame.readInt32BE(4);
      const { api, clientId } = asked.get(correlationId) ?? { api: -1, clientId: '' };
      asked.delete(correlationId);
      if (client.destroyed || stalled) return;
      const fate = decide(api, frame.length, clientId);
      if (typeof fate === 'object') await ('until' in fate ? fate.until : delay(fate.delayMs));
      if (fate === 'deliver' || typeof fate === 'object') {
        client.write(frame);
        return;
      }
      lost.set(api, (lost.get(api) ?? 0) + 1);
      if (fate === 'cut') client.destroy();
      else stalled = true;
    }

    client.on('data', (chunk: Buffer) => {
      // Length, API key and version, correlation id, client id.
      for (const frame of requests(chunk)) {
        const api = frame.readInt16BE(4);
        asked.set(frame.readInt32BE(8), { api, clientId: clientIdOf(frame) });
        if (reaches(api)) upstream.write(frame);
      }
    });
    upstream.on('data', (chunk: Buffer) => {
      for (const frame of answers(chunk)) delivery = delivery.then(() => deliver(frame));
    });
  });
  return {
    port: proxy.port,
    lost: (api) => lost.get(api) ?? 0,
    [Symbol.asyncDispose]: proxy.stop,
  };
}

/** Cuts what comes on a connection into whole frames: a length of four bytes, and as many bytes as it says. */
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

/** The client's name in the header of a request. */
function clientIdOf(frame: Buffer): string {
  const length = frame.readInt16BE(12);
  return length < 0 ? '' : frame.toString('utf8', 14, 14 + length);
}
