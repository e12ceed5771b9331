import { type EventPerson, personOf } from '@sluice/shared/rows/deleted-person';
import { decodePosition, isAtLeast, type StreamPosition } from '../stream/stream.ts';
import type { LogLine } from './delivery-log.ts';
import type { Message } from './http-sender.ts';
import type { SendableEvent } from './shown-events.ts';
import { messageId } from './signature.ts';
import type { Webhook } from './webhook.ts';
import type { StreamMessage, WebhookStream } from './webhook-stream.ts';

/** A delivery of several events has so many at most, and ends before the event with which it would have more bytes. */
export const BATCH_EVENTS_MAX = 100;
export const BATCH_BYTES_MAX = 1_048_576;

/** How long a delivery of several events is gathered, in milliseconds. */
export const BATCH_MS_MAX = 5_000;

/** How long the events of a delivery that was begun before are waited for, in milliseconds: they are stored already. */
const REPEAT_MS_MAX = 60_000;

/** Without an event a position is returned after so many milliseconds at the latest. */
const IDLE_MS = 3_600_000;

/** An event of a delivery. */
export interface DeliveredEvent extends SendableEvent {
  readonly uuid: string;
  /** As its record has it. */
  readonly timestamp: string;
  /** The record, as JSON. */
  readonly data: string;
}

/** What is sent at once, unless it is hidden by then. */
export interface Delivery {
  readonly kind: 'delivery';
  readonly events: readonly DeliveredEvent[];
  /** The id of the position after it. */
  readonly end: string;
  /** Whether the same position would always give the same events. */
  readonly isWhole: boolean;
}

/** What a stream has for a webhook next. */
export type Gathered = Delivery | Exclude<StreamMessage, { readonly kind: 'event' }>;

/**
 * Reads the next delivery of a stream, or a position if there is no event before it.
 *
 * @param sendingTo the id of the position at which the delivery ended when it was sent before; empty: it was not
 * @param onFirst is told when the first event was received
 */
export async function gather(
  stream: WebhookStream,
  webhook: Webhook,
  sendingTo: string,
  signal: AbortSignal,
  onFirst: (receivedAtMs: number) => void,
): Promise<Gathered | undefined> {
  const first = await stream.next(IDLE_MS, signal);
  if (first?.kind !== 'event') return first;
  onFirst(Math.floor(first.receivedAtUs / 1_000));
  if (!webhook.batched) return deliveryOf([first], true);
  const events = [first];
  const to = sendingTo === '' ? undefined : decodePosition(sendingTo)?.position;
  const deadline = performance.now() + (to ? REPEAT_MS_MAX : BATCH_MS_MAX);
  let bytes = first.data.length;
  let isWhole = false;
  while (!isWhole && !isReached(events.at(-1)?.id, to)) {
    const next = await stream.next(deadline - performance.now(), signal);
    if (!next) break;
    if (next.kind === 'position' && !isReached(next.id, to)) continue;
    const isNext = next.kind === 'event' && bytes + next.data.length <= BATCH_BYTES_MAX && !isBeyond(next.id, to);
    if (isNext) {
      events.push(next);
      bytes += next.data.length;
      isWhole = events.length === BATCH_EVENTS_MAX;
    } else {
      stream.unread(next);
      isWhole = next.kind === 'event';
      break;
    }
  }
  return signal.aborted ? undefined : deliveryOf(events, isWhole);
}

/** Whether a position is at another one, or after it. */
function isReached(id: string | undefined, to: StreamPosition | undefined): boolean {
  const position = to && id !== undefined && decodePosition(id)?.position;
  return position ? isAtLeast(position, to) : false;
}

function isBeyond(id: string, to: StreamPosition | undefined): boolean {
  const position = to && decodePosition(id)?.position;
  return position ? isAtLeast(position, to) && !isAtLeast(to, position) : false;
}

type EventMessage = Extract<StreamMessage, { readonly kind: 'event' }>;

function deliveryOf(messages: readonly EventMessage[], isWhole: boolean): Delivery {
  return { kind: 'delivery', events: messages.map(asDelivered), end: messages.at(-1)?.id ?? '', isWhole };
}

function asDelivered({ data, shownAtMs, receivedAtUs }: EventMessage): DeliveredEvent {
  const { uuid, timestamp, ...whose } = JSON.parse(data) as Record<'uuid' | 'timestamp', string> & EventPerson;
  const person = personOf(whose);
  return { uuid, timestamp, timestampMs: Date.parse(timestamp), person, data, shownAtMs, receivedAtUs };
}

/** Returns what a receiver is sent for some events. Its id is that of these events: without one of them it is another message. */
export function messageOf(webhook: Webhook, events: readonly DeliveredEvent[]): Message & Pick<LogLine, 'type'> {
  const type = webhook.batched ? 'events' : 'event';
  const data = webhook.batched ? `[${events.map((event) => event.data).join(',')}]` : events[0]?.data;
  return {
    type,
    id: messageId(
      webhook.id,
      events.map(({ uuid, timestamp }) => `${uuid} ${timestamp}`),
    ),
    body: `{"type":"${type}","timestamp":"${events[0]?.timestamp}","data":${data}}`,
  };
}
