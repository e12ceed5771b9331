import type { MemoryBudget } from '@sluice/shared/http/memory-budget';
import { Problem, type ProblemCode } from '@sluice/shared/http/problem';
import { namesSegments } from '../records/records.ts';
import { decodePosition, isAtLeast, type StreamPosition } from '../stream/stream.ts';
import { type Delivery, gather, messageOf } from './delivery.ts';
import type { DeliverySource, OpenSource, PassedOver, Sendable } from './delivery-source.ts';
import type { ShownEvents } from './shown-events.ts';
import type { Webhook } from './webhook.ts';
import { type StreamSource, WebhookStream } from './webhook-stream.ts';

export interface EventSourceOptions {
  readonly streams: StreamSource;
  /** What waits for receivers is held in it. */
  readonly memory: Pick<MemoryBudget, 'open'>;
  readonly shown: Pick<ShownEvents, 'among'>;
  /**
   * For how long a stream keeps what the segments of its filter were when it was opened, in milliseconds; it says where it is more
   * often.
   */
  readonly segmentsMsMax: number;
}

/** Returns what opens the events of webhooks. */
export function eventSources(options: EventSourceOptions): OpenSource {
  return async (webhook, position) => {
    const after = decodePosition(position);
    if (!after) throw new Problem('position_lost', 'The stored position is malformed.');
    const stream = await WebhookStream.open(options.streams, webhook, after, options.memory);
    return new EventSource(options, webhook, stream, after.position);
  };
}

/** The stored events of a webhook, in the order of storage. */
class EventSource implements DeliverySource {
  readonly #options: EventSourceOptions;
  readonly #webhook: Webhook;
  readonly #stream: WebhookStream;
  readonly #untilMs: number;
  #at: StreamPosition;

  constructor(options: EventSourceOptions, webhook: Webhook, stream: WebhookStream, at: StreamPosition) {
    this.#options = options;
    this.#webhook = webhook;
    this.#stream = stream;
    this.#at = at;
    const lastsMs = namesSegments(webhook.filter) ? options.segmentsMsMax : Number.POSITIVE_INFINITY;
    this.#untilMs = performance.now() + lastsMs;
  }

  async next(sendingTo: string, signal: AbortSignal, onWaiting: (sinceMs: number) => void) {
    for (;;) {
      if (performance.now() > this.#untilMs) return 'end';
      this.#stream.release();
      const next = await gather(this.#stream, this.#webhook, sendingTo, signal, onWaiting);
      if (signal.aborted || !next) return undefined;
      if (next.kind === 'end') return 'end';
      if (next.kind === 'problem') throw new Problem(next.code as ProblemCode, 'The stream ended.');
      if (next.kind === 'delivery') return this.#sendable(next);
      // A stream begins with the position that it was opened at.
      if (this.#moveTo(next.id)) return passedOver(next.id);
    }
  }

  close(): void {
    this.#stream.close();
  }

  #sendable({ events, end, isWhole }: Delivery): Sendable {
    this.#moveTo(end);
    const message = async () => {
      const shown = await this.#options.shown.among(this.#webhook.workspace, events);
      return shown.length === 0 ? undefined : { ...messageOf(this.#webhook, shown), events: shown.length };
    };
    return { kind: 'message', end, isWhole, message };
  }

  /** Returns whether it was before that position. */
  #moveTo(id: string): boolean {
    const position = decodePosition(id)?.position;
    if (!position || isAtLeast(this.#at, position)) return false;
    this.#at = position;
    return true;
  }
}

function passedOver(position: string): PassedOver {
  return { kind: 'position', position, isStored: false };
}
