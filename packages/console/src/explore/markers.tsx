import { useMemo } from 'preact/hooks';
import { type EventPage, getRecords, hrefOf } from '../base/base.ts';
import { Problem, Time, useLoad } from '../parts/parts.ts';

/** A chart is no list: the newest ones are drawn. */
const MARKERS_MAX = 100;

interface Range {
  readonly startDate: string;
  readonly endDate: string;
}

interface Marked {
  /** The name of the events; empty without one. */
  readonly event: string;
  readonly events: EventPage['results'];
  /** In milliseconds since 1970. */
  readonly times: readonly number[];
  readonly error: Error | undefined;
}

/** Loads the events of a name that a chart marks, such as deployments. */
export function useMarkers(event: string, { startDate, endDate }: Range): Marked {
  const query = new URLSearchParams({ event, startDate, endDate, limit: String(MARKERS_MAX), total: 'none' });
  const { data, error } = useLoad(query.toString(), async (signal) =>
    event === '' ? undefined : await getRecords<EventPage>(`events?${query}`, signal),
  );
  const events = data?.results ?? [];
  const times = useMemo(() => events.map(({ timestamp }) => Date.parse(timestamp)), [data]);
  return { event, events, times, error };
}

/** The same in words. */
export function Markers({ event, events, error, range }: Marked & { readonly range: Range }) {
  if (error) return <Problem error={error} />;
  if (event === '') return null;
  return (
    <details>
      <summary>
        Vertical lines: <bdi>{event}</bdi> (
        {events.length === MARKERS_MAX ? `the newest ${MARKERS_MAX}` : events.length})
      </summary>
      <ul>
        {events.map(({ uuid, timestamp }) => (
          <li key={uuid}>
            <Time value={timestamp} />
          </li>
        ))}
      </ul>
      <a href={hrefOf(['events'], new URLSearchParams({ event, ...range }))}>These events</a>
    </details>
  );
}
