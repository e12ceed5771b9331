import { CircleAlert } from 'lucide';
import type { ComponentChildren } from 'preact';
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
  type Actions,
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

const READ_EVERY_MS = 5_000;

/** Why something is paused, as a person says it. */
const REASONS: Readonly<Record<NonNullable<Webhook['pausedBecause']>, string>> = {
  client: 'by a request',
  gone: 'the receiver responded 410',
  failing: 'attempts failed for too long',
  position_lost: 'the event store has other data than before; replay it',
  filter: 'its filter cannot be read any more',
};

/** What webhooks, alerts and digests have in common. */
export type Managed = Pick<
  Webhook,
  'id' | 'url' | 'state' | 'pausedBecause' | 'failedAttempts' | 'failingSince' | 'stateSince'
>;

export function stateOf({ state, pausedBecause, failedAttempts }: Managed): string {
  if (state === 'paused') return `paused: ${pausedBecause ? REASONS[pausedBecause] : ''}`;
  return failedAttempts === 0 ? 'active' : `active, ${failedAttempts} failed attempts`;
}

/** Whether somebody has to look after it. */
export function isFailing({ state, pausedBecause, failedAttempts }: Managed): boolean {
  return state === 'paused' ? pausedBecause !== 'client' : failedAttempts > 0;
}

interface ManagedPageProps<One extends Managed> {
  /** The list that it is in, as the API calls it. */
  readonly list: 'webhooks' | 'alerts' | 'digests';
  readonly id: string;
  /** What the page is called until it is known. */
  readonly title: string;
  readonly heading: (one: One) => string;
  /** What is said after it was paused, resumed, and before it is deleted. */
  readonly texts: Readonly<Record<'paused' | 'resumed' | 'question', string>>;
  /** Where the page of all is. Default: at the name of the list. */
  readonly home?: string;
  /** What is particular to it. */
  readonly children: (one: One, act: Actions['act']) => ComponentChildren;
}

/** A page of a webhook, an alert or a digest: what it is, what can be done with it, and its last attempts. */
export function ManagedPage<One extends Managed>(props: ManagedPageProps<One>) {
  const { list, id, title, heading, texts, home = list, children } = props;
  const path = `${list}/${encodeURIComponent(id)}`;
  const { count, outcome, failure, act } = useAction();
  const loaded = useLoad(
    `${path} ${count}`,
    async (signal) => {
      const [one, { deliveries }] = await Promise.all([
        getJson<One>(path, signal),
        getJson<{ readonly deliveries: readonly WebhookDelivery[] }>(`${path}/deliveries`, signal),
      ]);
      return { one, deliveries };
    },
    READ_EVERY_MS,
  );
  const { data } = loaded;
  const pause = async () => {
    await sendJson(path, 'PATCH', { state: 'paused' });
    return texts.paused;
  };
  const resume = async () => {
    await request(`${path}/resume`, { method: 'POST' });
    return texts.resumed;
  };
  const remove = async () => {
    await request(path, { method: 'DELETE' });
    location.hash = hrefOf([home]);
    return 'It is deleted.';
  };
  const sendTest = async () => {
    const response = await request(`${path}/test`, { method: 'POST' });
    const { delivered, status, error: reason, durationMs } = (await response.json()) as WebhookTest;
    return delivered ? `The receiver responded ${status} after ${durationMs} ms.` : `The test failed: ${reason}.`;
  };
  return (
    <>
      <h1>
        <bdi>{data ? heading(data.one) : title}</bdi>
      </h1>
      <LoadState loaded={loaded} scope="webhooks" />
      {failure && <Problem error={failure} />}
      {data && (
        <>
          {children(data.one, act)}
          <div class="bar">
            <button type="button" onClick={() => void act(sendTest)}>
              Send a test
            </button>
            {data.one.state === 'active' && (
              <button type="button" onClick={() => void act(pause)}>
                Pause
              </button>
            )}
            {(data.one.state === 'paused' || data.one.failedAttempts > 0) && (
              <button type="button" class="primary" onClick={() => void act(resume)}>
                Resume
              </button>
            )}
            <ConfirmButton
              label="Delete"
              question={texts.question}
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

function Deliveries({ deliveries }: { readonly deliveries: readonly WebhookDelivery[] }) {
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
              <td class="number">{type === 'event' || type === 'events' ? formatNumber(events) : type}</td>
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
