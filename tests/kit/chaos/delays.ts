import { KAFKA_API, type KafkaFate } from '../kafka-proxy.ts';

/** Responses to one kind of request of one kind of client. */
export interface ResponseKind {
  readonly api: number;
  readonly clientId: string;
}

/** The brokers' requests to each other pass the proxies too, and have other client names. */
export const WRITERS_FETCH: ResponseKind = { api: KAFKA_API.fetch, clientId: 'sluice-writer' };
export const INGEST_SEND: ResponseKind = { api: KAFKA_API.produce, clientId: 'sluice-ingest-api' };

/** Delays single responses of brokers. */
export interface Delays {
  /** Delays the next response of this kind. */
  delayNext(broker: number, kind: ResponseKind, ms: number): void;
  /** Returns the `decide` of a broker's proxy. */
  decide(broker: number): (api: number, bytes: number, clientId: string) => KafkaFate;
}

export function createDelays(): Delays {
  const next = new Map<number, { readonly kind: ResponseKind; readonly ms: number }>();
  return {
    delayNext: (broker, kind, ms) => void next.set(broker, { kind, ms }),
    decide: (broker) => (api, _bytes, clientId) => {
      const found = next.get(broker);
      if (found?.kind.api !== api || found.kind.clientId !== clientId) return 'deliver';
      next.delete(broker);
      return { delayMs: found.ms };
    },
  };
}
