import { CircleAlert } from 'lucide';
import {
  formatNumber,
  getJson,
  hrefOf,
  request,
  sendJson,
  type Webhook,
  type WebhookDelivery,
  type WebhookTest,
} from '../base/base.ts';
import {
  ConfirmButton,
  CsvButton,
  Icon,
  LoadState,
  Problem,
  Scrollable,
  Time,
  tableOf,
  useAction,
  useLoad,
} from '../parts/parts.ts';
import { eventsOf, stateOf } from './webhooks-page.tsx';

const READ_EVERY_MS = 5_000;

interface WebhookWithDeliveries {
  readonly webhook: Webhook;
  readonly deliveries: readonly WebhookDelivery[];
}

/** A webhook: its state, what can be done with it, and its last attempts. */
export function WebhookPage({ id }: { readonly id: string }) {
  const path = `webhooks/${encodeURIComponent(id)}`;
  const { count, outcome, failure, act } = useAction();
  const loaded = useLoad<WebhookWithDeliveries>(
    `${path} ${count}`,
    async (signal) => {
      const [webhook, { deliveries }] = await Promise.all([
        getJson<Webhook>(path, signal),
        getJson<Pick<WebhookWithDeliveries, 'deliveries'>>(`${path}/deliveries`, signal),
      ]);
      return { webhook, deliveries };
    },
    READ_EVERY_MS,
  );
  const { data } = loaded;
  const pause = async () => {
    await sendJson(path, 'PATCH', { state: 'paused' });
    return 'It is paused. Events wait until it is resumed.';
  };
  const resume = async () => {
    await request(`${path}/resume`, { method: 'POST' });
    return 'It goes on where it stopped.';
  };
  const remove = async () => {
    await request(path, { method: 'DELETE' });
    location.hash = hrefOf(['webhooks']);
    return 'It is deleted.';
  };
  const sendTest = async () => {
    const response = await request(`${path}/test`, { method: 'POST' });
    const { delivered, status, error: reason, durationMs } = (await response.json()) as WebhookTest;
    return delivered ? `The receiver responded ${status} after ${durationMs} ms.` : `The test failed: ${reason}.`;
  };
  return (
    <>
      <h1>{data?.webhook.url ?? 'Webhook'}</h1>
      <LoadState loaded={loaded} scope="webhooks" />
      {failure && <Problem error={failure} />}
      {data && (
        <>
          <p>
            Events: {eventsOf(data.webhook)}. State: {stateOf(data.webhook)}, since{' '}
            <Time value={data.webhook.failingSince ?? data.webhook.stateSince} />.
          </p>
          <div class="bar">
            <button type="button" onClick={() => void act(sendTest)}>
              Send a test
            </button>
            {data.webhook.state === 'active' && (
              <button type="button" onClick={() => void act(pause)}>
                Pause
              </button>
            )}
            {(data.webhook.state === 'paused' || data.webhook.failedAttempts > 0) && (
              <button type="button" class="primary" onClick={() => void act(resume)}>
                Resume
              </button>
            )}
            <ConfirmButton
              label="Delete"
              question="Nothing is sent any more, and its secret is gone."
              confirm="Delete it"
              onConfirm={() => void act(remove)}
            />
            <p role="status">{outcome}</p>
          </div>
          <Deliveries deliveries={data.deliveries} />
          {data.deliveries.length > 0 && <CsvButton name="Attempts" table={() => tableOf(data.deliveries)} />}
        </>
      )}
    </>
  );
}

function Deliveries({ deliveries }: Pick<WebhookWithDeliveries, 'deliveries'>) {
  if (deliveries.length === 0) return <p>Nothing was sent yet.</p>;
  return (
    <Scrollable label="Last attempts">
      <table class="numbers">
        <caption>The last attempts, the newest first</caption>
        <thead>
          <tr>
            <th scope="col">Time</th>
            <th scope="col">Response</th>
            <th scope="col" class="number">
              Events
            </th>
            <th scope="col" class="number">
              Attempt
            </th>
            <th scope="col" class="number">
              Milliseconds
            </th>
            <th scope="col">Message</th>
          </tr>
        </thead>
        <tbody>
          {deliveries.map(({ id, at, type, events, attempt, status, durationMs, error }) => (
            <tr key={`${id} ${at}`}>
              <td>
                <Time value={at} />
              </td>
              <td>
                {error === null ? (
                  status
                ) : (
                  <>
                    <Icon of={CircleAlert} />
                    {error}
                  </>
                )}
              </td>
              <td class="number">{type === 'test' ? 'test' : formatNumber(events)}</td>
              <td class="number">{formatNumber(attempt)}</td>
              <td class="number">{formatNumber(durationMs)}</td>
              <td class="json">{id}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scrollable>
  );
}
