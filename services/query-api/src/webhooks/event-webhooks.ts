import type { StoredWebhook, Webhook } from './webhook.ts';
import type { ManagedKind } from './webhook-operations.ts';
import { positionNow, type StreamSource } from './webhook-stream.ts';

/** What responses show of a webhook that sends events. */
export type EventMembers = Pick<Webhook, 'filter' | 'batched'>;

/** Returns the kind of webhooks that send events: those that are stored from then on. */
export function eventWebhooks(streams: StreamSource, max: number): ManagedKind<EventMembers> {
  return {
    ...{ kind: 'events', singular: 'webhook', max },
    firstPosition: (webhook) => positionNow(streams, webhook),
    membersOf: ({ webhook: { filter, batched } }: StoredWebhook) => ({ filter, batched }),
    testBody: ({ id }, now) => ({ type: 'test', timestamp: now.toISOString(), data: { webhook: id } }),
  };
}
