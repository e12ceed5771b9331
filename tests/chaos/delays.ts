import { KAFKA_API, type KafkaFate } from '../support/kafka-proxy.ts';

/** Answers to one kind of request of one kind of client. */
export interface AnswerKind {
  readonly api: number;
  readonly clientId: string;
}

/** What the brokers send to each other passes the proxies as well, and is not meant. */
export const WRITERS_FETCH: AnswerKind = { api: KAFKA_API.fetch, clientId: 'sluice-writer' };
export const INGEST_SEND: AnswerKind = { api: KAFKA_API.produce, clientId: 'sluice-ingest-api' };

/** Delays single answers of brokers. */
export interface Delays {
  /** Delays the next answer of this kind. */
  delayNext(broker: number, kind: AnswerKind, ms: number): void;
  /** What a broker's proxy asks about each answer. */
  decide(broker: number): (api: number, bytes: number, clientId: string) => KafkaFate;
}

export function createDelays(): Delays {
  const next = new Map<number, { readonly kind: AnswerKind; readonly ms: number }>();
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
