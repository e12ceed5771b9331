import type { LogLine } from './delivery-log.ts';
import type { Message } from './http-sender.ts';
import type { Webhook } from './webhook.ts';

/** A message of a webhook, as it may be sent now. */
export interface SentMessage extends Message, Pick<LogLine, 'type'> {
  /** How many events it has. */
  readonly events: number;
}

/** What a webhook has to send next. */
export interface Sendable {
  readonly kind: 'message';
  /** The position after it. */
  readonly end: string;
  /** Whether the same position would always give the same message. */
  readonly isWhole: boolean;
  /** Returns the message as it is just before an attempt; undefined if nothing of it may be sent any more. */
  readonly message: () => Promise<SentMessage | undefined>;
}

/** Nothing has to be sent up to a position. */
export interface PassedOver {
  readonly kind: 'position';
  readonly position: string;
  /** Whether it is stored now. Otherwise it is once in a while: the source would pass over it again. */
  readonly isStored: boolean;
}

/** What a webhook sends, from a position on. What a position is, is up to the source: an empty text is none. */
export interface DeliverySource {
  /**
   * Returns what comes next: `end` if the source has to be opened again, and undefined when the signal aborts or nothing comes for
   * long.
   *
   * @param sendingTo the end of the message that was sent before, if it has to be the same one again; otherwise empty
   * @param onWaiting is told since when something waits to be sent, in milliseconds since 1970
   * @throws {Problem} what keeps it from going on; `position_lost` and `invalid_request` do so for good
   */
  next(
    sendingTo: string,
    signal: AbortSignal,
    onWaiting: (sinceMs: number) => void,
  ): Promise<Sendable | PassedOver | 'end' | undefined>;
  close(): void;
}

/** Opens the source of a webhook at a position. @throws {Problem} as {@link DeliverySource.next} does */
export type OpenSource = (webhook: Webhook, position: string) => Promise<DeliverySource>;
