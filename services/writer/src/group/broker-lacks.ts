import type { Logger } from '@sluice/shared/base/log';
import { leaderEpochOf } from '@sluice/storage/protocol/position';
import type { Batch } from 'kafkajs';

/** What brokers may lack, and what does not hold then. */
const LACKS = {
  time:
    'Kafka returns records without a time: how long writers are behind, and how long Kafka still keeps what is not stored, ' +
    'is measured wrong',
  epoch:
    'Kafka returns records without the epoch of their leader: a log that lost its end, and grew again, is noticed only when a ' +
    'writer takes its partition over',
  metadata:
    'Kafka does not keep the metadata of committed offsets: two databases that one consumer group fills are not noticed',
} as const;

/** Says once what the brokers lack, as what a writer reads from them anyway shows. */
export class BrokerLacks {
  readonly #logger: Logger;
  readonly #found = new Set<keyof typeof LACKS>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** A sentence for each. */
  get warnings(): readonly string[] {
    return [...this.#found].map(sentenceOf);
  }

  /** Looks at a fetched batch. */
  look({ messages: [first] }: Pick<Batch, 'messages'>): void {
    if (!first) return;
    if (Number(first.timestamp) <= 0) this.add('time');
    if (leaderEpochOf(first) < 0) this.add('epoch');
  }

  add(lack: keyof typeof LACKS): void {
    if (this.#found.has(lack)) return;
    this.#found.add(lack);
    this.#logger.warn(sentenceOf(lack));
  }
}

function sentenceOf(lack: keyof typeof LACKS): string {
  return `${LACKS[lack]} (docs/operate/engines.md)`;
}
