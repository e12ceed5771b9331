import { useMemo, useState } from 'preact/hooks';
import {
  calendar,
  type EventPage,
  type EventSeries,
  formatChange,
  formatNumber,
  getJson,
  getRecords,
  hrefOf,
  idOf,
  ingestUrl,
  key,
  type OrganizationPage,
  patiently,
  Slots,
  timeZone,
  type UserPage,
} from '../base/base.ts';
import { comparison, linesOf, partialBuckets, SeriesChart, SeriesTable, seriesParams } from '../charts/charts.ts';
import { EventTable, useLiveTail, withStored } from '../events/events.ts';
import { NewestHint } from '../filters/filters.ts';
import { PipelineState } from '../operate/operate.ts';
import { Figure, LoadState, Problem, Scrollable, Snippet, Time, useLoad } from '../parts/parts.ts';

/** Numbers of the home page are read again so often. */
const READ_EVERY_MS = 60_000;

/** The numbers of the page are asked for so many at once: they share the slots of the workspace with everybody else. */
const slots = new Slots(3);

/** Returns a number of the page, or a list, when it has a slot; throws as `getJson` does. */
function loadInSlot<Body>(path: string, signal: AbortSignal): Promise<Body> {
  return slots.run(() => patiently(() => getJson<Body>(path, signal), signal));
}

/** What has changed: numbers beside those of the time before, what happens most, who is new, and whether all of it is stored. */
export function HomePage() {
  const [hasBegun, setHasBegun] = useState(false);
  const loaded = useLoad(`home ${hasBegun}`, (signal) => getRecords<EventPage>('events?limit=1&total=none', signal));
  const { data } = loaded;
  return (
    <>
      <h1>Home</h1>
      <LoadState loaded={loaded} />
      {data && <PipelineState />}
      {data && (data.results.length > 0 ? <Overview /> : <FirstVisit onBegin={() => setHasBegun(true)} />)}
    </>
  );
}

function Overview() {
  return (
    <>
      <dl class="figures">
        <Compared term="Events, last 24 hours" range="24h" measure="count" />
        <Compared term="Events, last 7 days" range="7d" measure="count" />
        <Compared term="Events, last 30 days" range="30d" measure="count" />
        <Compared term="Users, last 24 hours" range="24h" measure="users" />
        <Compared term="Users, last 7 days" range="7d" measure="users" />
        <Compared term="Users, last 30 days" range="30d" measure="users" />
      </dl>
      <Trend />
      <TopEvents />
      <NewestEntities path="users" title="Newest users" />
      <NewestEntities path="organizations" title="Newest organizations" />
    </>
  );
}

interface ComparedProps {
  readonly term: string;
  /** The range, which ends now, as Explore names it. */
  readonly range: string;
  readonly measure: 'count' | 'users';
}

/** A number of a range beside that of as much time before. */
function Compared({ term, range, measure }: ComparedProps) {
  const { data, error, retry } = useLoad<EventSeries>(
    `${measure} ${range} ${timeZone.value}`,
    (signal) => loadInSlot(`events/series?${comparison(range, calendar.value, new Date())}&measure=${measure}`, signal),
    READ_EVERY_MS,
  );
  const before = data?.previous?.total ?? null;
  const href = hrefOf(['explore'], new URLSearchParams({ range, measure }));
  return (
    <Figure term={term} value={data ? formatNumber(data.total) : error ? '–' : '…'}>
      {error ? (
        <>
          {error.message}{' '}
          <button type="button" onClick={retry}>
            Try again
          </button>
        </>
      ) : (
        <>
          {data && `${formatChange(data.total, before)}, before: ${formatNumber(before)}`} <a href={href}>Chart</a>
        </>
      )}
    </Figure>
  );
}

/** The events of each of the last 30 days, beside those of the 30 days before. */
function Trend() {
  const loaded = useLoad<EventSeries>(
    `trend ${timeZone.value}`,
    (signal) => {
      const params = new URLSearchParams({ range: '30d', interval: 'day', compare: 'previous' });
      return loadInSlot(`events/series?${seriesParams(params, calendar.value, new Date())}`, signal);
    },
    READ_EVERY_MS,
  );
  const { data } = loaded;
  const drawn = useMemo(() => {
    if (!data) return undefined;
    const { buckets, interval, timeZone } = data;
    const lines = linesOf(data).map((line) => ({ ...line, label: 'Events' }));
    return { buckets, interval, timeZone, lines, partial: partialBuckets(data) };
  }, [data]);
  return (
    <section aria-labelledby="trend">
      <h2 id="trend">Events by day</h2>
      <LoadState loaded={loaded} />
      {drawn && (
        <>
          <p class="muted">The dashed line is the 30 days before.</p>
          {data?.total === 0 && <NewestHint filters={new URLSearchParams()} />}
          <SeriesChart {...drawn} label="Chart of events by day, beside the 30 days before" />
          <SeriesTable {...drawn} />
        </>
      )}
    </section>
  );
}

const TOP_EVENTS = 10;

/** What happened most in the last 7 days. */
function TopEvents() {
  const loaded = useLoad<EventSeries>(
    `top ${timeZone.value}`,
    (signal) => {
      const query = comparison('7d', calendar.value, new Date());
      return loadInSlot(`events/series?${query}&groupBy=event&groups=${TOP_EVENTS}`, signal);
    },
    READ_EVERY_MS,
  );
  const { data } = loaded;
  return (
    <section aria-labelledby="top">
      <h2 id="top">Most frequent events</h2>
      <LoadState loaded={loaded} />
      {data && (
        <Scrollable label="Counts of the most frequent events">
          <table class="totals">
            <caption>In the last 7 days, beside the 7 days before</caption>
            <thead>
              <tr>
                <th scope="col">Event</th>
                <th scope="col" class="number">
                  Count
                </th>
                <th scope="col" class="number">
                  Before
                </th>
                <th scope="col" class="number">
                  Change
                </th>
              </tr>
            </thead>
            <tbody>
              {linesOf(data)
                .slice(0, data.series.length)
                .map(({ label, total, previous }) => (
                  <tr key={label}>
                    <th scope="row">
                      <a href={hrefOf(['explore'], new URLSearchParams({ event: label, range: '7d' }))}>{label}</a>
                    </th>
                    <td class="number">{formatNumber(total)}</td>
                    <td class="number">{formatNumber(previous?.total ?? null)}</td>
                    <td class="number">{formatChange(total, previous?.total ?? null)}</td>
                  </tr>
                ))}
            </tbody>
          </table>
        </Scrollable>
      )}
      {data?.series.length === 0 && <p class="muted">Nothing happened in the last 7 days.</p>}
    </section>
  );
}

const NEWEST = 5;

interface NewestProps {
  readonly path: 'users' | 'organizations';
  readonly title: string;
}

/** The users or organizations that were seen first lately. */
function NewestEntities({ path, title }: NewestProps) {
  const loaded = useLoad(
    path,
    (signal) =>
      loadInSlot<UserPage | OrganizationPage>(
        `${path}?orderByField=firstSeenAt&orderByDirection=DESC&limit=${NEWEST}`,
        signal,
      ),
    READ_EVERY_MS,
  );
  const { data } = loaded;
  return (
    <section aria-labelledby={`newest-${path}`}>
      <h2 id={`newest-${path}`}>{title}</h2>
      <LoadState loaded={loaded} />
      {data?.results.length === 0 && <p class="muted">None.</p>}
      <ul class="members">
        {data?.results.map((entity) => {
          const id = idOf(entity);
          return (
            <li key={id}>
              <a href={hrefOf([path, id])}>{id}</a>
              <span class="muted">
                {' '}
                first seen <Time value={entity.firstSeenAt} />
              </span>
            </li>
          );
        })}
      </ul>
    </section>
  );
}

const NO_FILTERS = new URLSearchParams();

/** What to do while the workspace has no event. The first one appears as it is stored. */
function FirstVisit({ onBegin }: { readonly onBegin: () => void }) {
  const tail = useLiveTail(true, NO_FILTERS);
  // What was stored before the tail began is not in it.
  const { data } = useLoad(`first events ${tail.starts}`, async (signal) =>
    tail.starts === 0 ? undefined : await getRecords<EventPage>('events?limit=50&total=none', signal),
  );
  const events = withStored(tail, data?.results ?? []);
  const withKey = key.value === '' ? 'YOUR_KEY' : key.value;
  const url = ingestUrl();
  const curl = `curl -X POST ${url}/v1/public/userGroups \\
  -H 'Authorization: Bearer ${withKey}' -H 'Content-Type: application/json' \\
  -d '{"foreignUserGroupId":"acme","foreignUserId":"jane","events":[{"event":"signed_up","properties":{"plan":"pro"}}]}'`;
  const client = `import { createClient } from '@sluice/client';

const client = createClient({ url: '${url}', key: '${withKey}' });
client.track('signed_up', { plan: 'pro' }, { userId: 'jane' });
await client.close();`;
  return (
    <>
      <p>There are no events in this workspace yet. Send the first one, with a key that has the scope ingest:</p>
      <Snippet title="With curl" text={curl} />
      <Snippet title="With the client for JavaScript" text={client} />
      <p class="muted">{url} stands for the address of ingest-api, which may be another one here.</p>
      {tail.error && <Problem error={tail.error} />}
      {events.length === 0 ? (
        <p role="status">Waiting for the first event …</p>
      ) : (
        <>
          <p role="status">The first event has arrived.</p>
          <EventTable events={events} caption="First events" />
          <p class="bar">
            <button type="button" class="primary" onClick={onBegin}>
              Show the numbers
            </button>
          </p>
        </>
      )}
    </>
  );
}
