import type { Webhook } from '../base/base.ts';
import { Time } from '../parts/parts.ts';
import { ManagedPage, stateOf } from './managed-page.tsx';
import { eventsOf } from './webhooks-page.tsx';

const TEXTS = {
  paused: 'It is paused. Events wait until it is resumed.',
  resumed: 'It goes on where it stopped.',
  question: 'Nothing is sent any more, and its secret is gone.',
};

/** A webhook: its state, what can be done with it, and its last attempts. */
export function WebhookPage({ id }: { readonly id: string }) {
  return (
    <ManagedPage<Webhook> {...{ list: 'webhooks', id, title: 'Webhook', heading: ({ url }) => url, texts: TEXTS }}>
      {(webhook) => (
        <p>
          Events: {eventsOf(webhook)}. State: {stateOf(webhook)}, since{' '}
          <Time value={webhook.failingSince ?? webhook.stateSince} />.
        </p>
      )}
    </ManagedPage>
  );
}
