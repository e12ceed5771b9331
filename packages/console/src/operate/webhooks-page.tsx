import { CircleAlert } from 'lucide';
import { useState } from 'preact/hooks';
import { getAll, hrefOf, sendJson, type Webhook, type WebhookWithSecret } from '../base/base.ts';
import {
  type Condition,
  Conditions,
  EVENT_FIELD,
  FilterField,
  filterParams,
  textOfFilters,
} from '../filters/filters.ts';
import {
  CsvButton,
  DocumentTable,
  Icon,
  LoadState,
  Problem,
  Snippet,
  Time,
  tableOf,
  useAction,
  useLoad,
} from '../parts/parts.ts';

const READ_EVERY_MS = 10_000;

/** Why a webhook is paused, as a person says it. */
const REASONS: Readonly<Record<NonNullable<Webhook['pausedBecause']>, string>> = {
  client: 'by a request',
  gone: 'the receiver responded 410',
  failing: 'attempts failed for too long',
  position_lost: 'the event store has other data than before; replay it',
  filter: 'its filter cannot be read any more',
};

/** The webhooks of the workspace, each with its state; new ones are created. */
export function WebhooksPage() {
  const { count, outcome, failure, act } = useAction();
  const [created, setCreated] = useState<WebhookWithSecret>();
  const loaded = useLoad(
    `webhooks ${count}`,
    (signal) => getAll<'webhooks', Webhook>('webhooks', signal),
    READ_EVERY_MS,
  );
  const { data } = loaded;
  const create = (given: object) =>
    act(async () => {
      const response = await sendJson('webhooks', 'POST', given);
      setCreated(await response.json());
      return 'The webhook is created. It gets the events that are stored from now on.';
    });
  return (
    <>
      <h1>Webhooks</h1>
      <LoadState loaded={loaded} scope="webhooks" />
      {failure && <Problem error={failure} />}
      <p role="status">{outcome}</p>
      {created && (
        <div class="notice">
          <Snippet title={`The secret of ${created.url}`} text={created.secret} />
          <p>It is shown only now: the receiver checks signatures with it.</p>
        </div>
      )}
      {data && <WebhookForm key={created?.id ?? ''} onCreate={(given) => void create(given)} />}
      {data?.webhooks.length === 0 && <p>There are no webhooks.</p>}
      {data && data.webhooks.length > 0 && <WebhookTable webhooks={data.webhooks} />}
      {data && data.webhooks.length > 0 && <CsvButton name="Webhooks" table={() => tableOf(data.webhooks)} />}
    </>
  );
}

function WebhookTable({ webhooks }: { readonly webhooks: readonly Webhook[] }) {
  return (
    <DocumentTable label="Webhooks" caption="Webhooks" columns={['Address', 'Events', 'State', 'Since']}>
      {webhooks.map((webhook) => (
        <tr key={webhook.id}>
          <th scope="row">
            <a href={hrefOf(['webhooks', webhook.id])}>{webhook.url}</a>
          </th>
          <td class="text">{eventsOf(webhook)}</td>
          <td class="text">
            {isFailing(webhook) && <Icon of={CircleAlert} />}
            {stateOf(webhook)}
          </td>
          <td>
            <Time value={webhook.failingSince ?? webhook.stateSince} />
          </td>
        </tr>
      ))}
    </DocumentTable>
  );
}

/** Which events a webhook gets, and how. */
export function eventsOf({ filter, batched }: Webhook): string {
  const filters = textOfFilters(new URLSearchParams(filter));
  return `${filters === '' ? 'all' : filters}, ${batched ? 'in batches' : 'one by one'}`;
}

export function stateOf({ state, pausedBecause, failedAttempts }: Webhook): string {
  if (state === 'paused') return `paused: ${pausedBecause ? REASONS[pausedBecause] : ''}`;
  return failedAttempts === 0 ? 'active' : `active, ${failedAttempts} failed attempts`;
}

/** Whether somebody has to look after it. */
function isFailing({ state, pausedBecause, failedAttempts }: Webhook): boolean {
  return state === 'paused' ? pausedBecause !== 'client' : failedAttempts > 0;
}

/** A form for a new webhook. */
function WebhookForm({ onCreate }: { readonly onCreate: (given: object) => void }) {
  const [event, setEvent] = useState('');
  const [conditions, setConditions] = useState<readonly Condition[]>([]);
  const submit = (submitted: SubmitEvent) => {
    submitted.preventDefault();
    const form = new FormData(submitted.currentTarget as HTMLFormElement);
    const filter = Object.fromEntries(filterParams({ fields: { event }, conditions, other: [] }));
    onCreate({ url: String(form.get('url')), filter, batched: form.has('batched') });
  };
  return (
    <form class="filters" aria-label="New webhook" onSubmit={submit}>
      <div class="fields">
        <label>
          Address that gets the events
          <input type="url" name="url" required placeholder="https://example.com/events" />
        </label>
        <FilterField field={EVENT_FIELD} value={event} onChange={setEvent} />
      </div>
      <Conditions conditions={conditions} onChange={setConditions}>
        <label>
          <input type="checkbox" name="batched" /> up to 100 events at once
        </label>
        <button type="submit" class="primary">
          Create a webhook
        </button>
      </Conditions>
    </form>
  );
}
