import { sleep } from '@sluice/shared/base/retry';
import type {
  DeliverySource,
  PassedOver,
  Sendable,
  SentMessage,
  StoredWebhook,
  Webhook,
} from '../webhooks/webhooks.ts';

/** A message as it was decided: it stays the same however often it is sent. */
export interface Message {
  readonly id: string;
  /** JSON. */
  readonly body: string;
  /** When it was decided, in milliseconds since 1970. */
  readonly atMs: number;
}

/** What a look has decided: the state from now on, and the message that it is due, if any. It is the position of the webhook. */
export interface Decision<State> {
  readonly state: State;
  readonly message?: Message | undefined;
}

export interface DecidingOptions<State> {
  readonly webhook: Webhook;
  /** Returns the newest of what is stored of the webhook; undefined if it is deleted. */
  readonly find: () => Promise<StoredWebhook | undefined>;
  readonly type: SentMessage['type'];
  /** What is stored. */
  readonly state: State;
  /** How often it looks, in milliseconds. */
  readonly everyMs: number;
  /** Returns what has changed; undefined if nothing has. */
  readonly look: (state: State, signal: AbortSignal) => Promise<Decision<State> | undefined>;
  readonly onClose: () => void;
}

/**
 * A source that looks at something again and again, and sends a message when that is due:
 *
 *     look ──▶ nothing has changed ──▶ look …
 *       ├────▶ the state has changed: a position ──▶ look …
 *       └────▶ a message is due: it is stored with its id and text, and then sent until it is delivered ──▶ look …
 */
export class DecidingSource<State> implements DeliverySource {
  readonly #options: DecidingOptions<State>;
  #state: State;
  #waitMs = 0;

  constructor(options: DecidingOptions<State>) {
    this.#options = options;
    this.#state = options.state;
  }

  async next(
    sendingTo: string,
    signal: AbortSignal,
    onWaiting: (sinceMs: number) => void,
  ): Promise<Sendable | PassedOver | undefined> {
    const decided = sendingTo === '' ? await this.#decide(signal) : (JSON.parse(sendingTo) as Decision<State>);
    if (!decided) return undefined;
    this.#state = decided.state;
    const { message } = decided;
    const position = JSON.stringify(decided);
    if (!message) return { kind: 'position', position, isStored: true };
    onWaiting(message.atMs);
    return { kind: 'message', end: position, isWhole: false, message: () => this.#current(message) };
  }

  close(): void {
    this.#options.onClose();
  }

  async #decide(signal: AbortSignal): Promise<Decision<State> | undefined> {
    for (;;) {
      await sleep(this.#waitMs, signal);
      if (signal.aborted) return undefined;
      const decided = await this.#options.look(this.#state, signal);
      this.#waitMs = this.#options.everyMs;
      if (signal.aborted) return undefined;
      if (decided) return decided;
    }
  }

  /** Of a webhook that was deleted, paused or changed, nothing is sent once that was answered. */
  async #current({ id, body }: Message): Promise<SentMessage> {
    const { webhook, find, type } = this.#options;
    const stored = await find();
    if (stored?.state.state !== 'active' || JSON.stringify(stored.webhook) !== JSON.stringify(webhook)) {
      throw new Error('the webhook was changed meanwhile');
    }
    return { id, type, body, events: 0 };
  }
}
