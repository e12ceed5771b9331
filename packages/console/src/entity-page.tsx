import { useMemo } from 'preact/hooks';
import {
  type Activity,
  ApiError,
  type EventPage,
  getJson,
  getRecords,
  idOf,
  type Organization,
  type OrganizationUserPage,
  type User,
  type UserOrganizationPage,
} from './api.ts';
import { EventTable } from './event-table.tsx';
import { formatNumber } from './format.ts';
import { Problem } from './problem.tsx';
import { hrefOf } from './route.ts';
import { SeriesChart } from './series-chart.tsx';
import { SeriesTable } from './series-table.tsx';
import { Time } from './time.tsx';
import { useLoad } from './use-load.ts';

/** Where users and organizations are in the API, and what they are called. */
const KINDS = {
  users: { noun: 'user', filter: 'userId', members: 'organizations', membersTitle: 'Organizations' },
  organizations: { noun: 'organization', filter: 'groupId', members: 'users', membersTitle: 'Users' },
} as const;

export type EntityPath = keyof typeof KINDS;

interface EntityProps {
  readonly path: EntityPath;
  readonly id: string;
}

/** Names that a URL cannot have in its path: browsers resolve them, also where they are encoded. */
const UNADDRESSABLE: ReadonlySet<string> = new Set(['.', '..']);

/** A user or an organization as it is now, what it belongs to, what it has done, and its newest events. */
export function EntityPage({ path, id }: EntityProps) {
  const { noun, filter } = KINDS[path];
  const filters = new URLSearchParams({ [filter]: id });
  return (
    <>
      <h1>
        <span class="muted">{noun}</span> {id}
      </h1>
      <p class="bar">
        <a href={hrefOf(['events'], filters)}>All events</a>
        <a href={hrefOf(['chart'], filters)}>Chart</a>
      </p>
      {UNADDRESSABLE.has(id) ? (
        <p class="notice">
          A browser cannot ask for what has the name “{id}”, since it means a folder in an address. Only its events are
          shown.
        </p>
      ) : (
        <>
          <EntityRecord path={path} id={id} />
          <Members path={path} id={id} />
          <ActivitySection path={path} id={id} />
        </>
      )}
      <NewestEvents filters={filters} />
    </>
  );
}

function EntityRecord({ path, id }: EntityProps) {
  const { data, error } = useLoad(`${path}/${id}`, (signal) =>
    getRecords<User | Organization>(addressOf(path, id), signal),
  );
  if (error) return <Problem error={error} />;
  return (
    data && (
      <>
        <p>
          First seen <Time value={data.firstSeenAt} />, last seen <Time value={data.lastSeenAt} />.
        </p>
        <Properties properties={data.properties} />
      </>
    )
  );
}

function addressOf(path: EntityPath, id: string): string {
  return `${path}/${encodeURIComponent(id)}`;
}

function Properties({ properties }: { readonly properties: Readonly<Record<string, unknown>> }) {
  const entries = Object.entries(properties);
  if (entries.length === 0) return <p class="muted">It has no properties.</p>;
  return (
    <table class="totals">
      <caption>Properties</caption>
      <thead>
        <tr>
          <th scope="col">Name</th>
          <th scope="col">Value</th>
        </tr>
      </thead>
      <tbody>
        {entries.map(([name, value]) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td class="json">{JSON.stringify(value)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const MEMBERS_MAX = 100;

function Members({ path, id }: EntityProps) {
  const { members, membersTitle } = KINDS[path];
  const { data, error, isLoading } = useLoad(`${path}/${id}`, (signal) =>
    getJson<UserOrganizationPage | OrganizationUserPage>(
      `${addressOf(path, id)}/${members}?limit=${MEMBERS_MAX}`,
      signal,
    ),
  );
  return (
    <section aria-labelledby="members">
      <h2 id="members">{membersTitle}</h2>
      {isLoading && <p class="muted">Loading …</p>}
      {error && !isNotFound(error) && <Problem error={error} />}
      {data?.results.length === 0 && <p class="muted">None.</p>}
      <ul class="members">
        {data?.results.map((member) => {
          const memberId = idOf(member);
          return (
            <li key={memberId}>
              <a href={hrefOf([members, memberId])}>{memberId}</a>
              <span class="muted">
                {' '}
                last seen <Time value={member.lastSeenAt} />
              </span>
            </li>
          );
        })}
      </ul>
      {data?.nextCursor && <p class="muted">These are the first {MEMBERS_MAX}.</p>}
    </section>
  );
}

function ActivitySection({ path, id }: EntityProps) {
  const { data, error, isLoading } = useLoad(`${path}/${id}`, (signal) =>
    getJson<Activity>(`${addressOf(path, id)}/activity`, signal),
  );
  const { filter } = KINDS[path];
  const drawn = useMemo(() => {
    const counts = data?.days.map(({ count }) => count) ?? [];
    const total = counts.reduce((sum, count) => sum + count, 0);
    return {
      buckets: data?.days.map(({ date }) => date) ?? [],
      lines: [{ label: 'Events', total, values: counts, previous: undefined }],
    };
  }, [data]);
  return (
    <section aria-labelledby="activity">
      <h2 id="activity">Activity</h2>
      {isLoading && <p class="muted">Loading …</p>}
      {error && !isNotFound(error) && <Problem error={error} />}
      {data && (
        <>
          <p class="muted">{formatNumber(drawn.lines[0]?.total ?? null)} events in the days below (UTC).</p>
          <SeriesChart {...drawn} interval="day" timeZone="UTC" label="Chart of events by day" />
          <SeriesTable {...drawn} interval="day" timeZone="UTC" />
          <table class="totals">
            <caption>Most frequent events</caption>
            <thead>
              <tr>
                <th scope="col">Event</th>
                <th scope="col" class="number">
                  Count
                </th>
              </tr>
            </thead>
            <tbody>
              {data.events.map(({ event, count }) => (
                <tr key={event}>
                  <th scope="row">
                    <a href={hrefOf(['events'], new URLSearchParams({ event, [filter]: id }))}>{event}</a>
                  </th>
                  <td class="number">{formatNumber(count)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </>
      )}
    </section>
  );
}

function NewestEvents({ filters }: { readonly filters: URLSearchParams }) {
  const query = `${filters}&limit=20&total=none`;
  const { data, error } = useLoad(query, (signal) => getRecords<EventPage>(`events?${query}`, signal));
  return (
    <section aria-labelledby="newest">
      <h2 id="newest">Newest events</h2>
      {error && <Problem error={error} />}
      {data?.results.length === 0 && <p class="muted">None.</p>}
      {data && data.results.length > 0 && <EventTable events={data.results} caption="At most 20, the newest first" />}
    </section>
  );
}

/** The record above says it once. */
function isNotFound(error: Error): boolean {
  return error instanceof ApiError && error.status === 404;
}
