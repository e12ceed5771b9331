import { useMemo } from 'preact/hooks';
import { calendar, type EventSeries, formatCount, formatNumber, getJson, hrefOf, toDouble } from '../base/base.ts';
import { linesOf, partialBuckets, SeriesChart, SeriesTable, seriesParams } from '../charts/charts.ts';
import { NewestHint } from '../filters/filters.ts';
import { LoadState, useLoad } from '../parts/parts.ts';
import { ENTITY_KINDS, type EntityProps, personParams } from './entity-kinds.ts';

/** What a user or an organization did in the last days, which are those of the time zone. */
export function EntityActivity(entity: EntityProps) {
  const filter = ENTITY_KINDS[entity.path].filter;
  const { timeZone } = calendar.value;
  const loaded = useLoad(`${filter} ${entity.id} ${timeZone}`, (signal) => {
    const params = new URLSearchParams({
      [`${filter}[eq]`]: entity.id,
      ...personParams(entity.path),
      range: '30d',
      interval: 'day',
      groupBy: 'event',
    });
    return getJson<EventSeries>(`events/series?${seriesParams(params, calendar.value, new Date())}`, signal);
  });
  const { data } = loaded;
  const total = toDouble(data?.total ?? 0) ?? 0;
  return (
    <section aria-labelledby="activity">
      <h2 id="activity">Activity</h2>
      <LoadState loaded={loaded} />
      {data?.complete === false && <p class="notice">There are too many events to count them in time.</p>}
      {data?.complete && total === 0 && (
        <>
          <p class="muted">No events in the last {data.buckets.length} days.</p>
          <NewestHint filters={new URLSearchParams({ [filter]: entity.id, ...personParams(entity.path) })} />
        </>
      )}
      {data && total > 0 && <Days {...entity} response={data} total={total} />}
    </section>
  );
}

interface DaysProps extends EntityProps {
  /** The events of each day, by name. */
  readonly response: EventSeries;
  readonly total: number;
}

function Days({ path, id, response, total }: DaysProps) {
  const { filter } = ENTITY_KINDS[path];
  const drawn = useMemo(() => {
    const { buckets, interval, timeZone } = response;
    const lines = linesOf(response);
    const values = buckets.map((_, day) => lines.reduce((sum, { values }) => sum + (values[day] ?? 0), 0));
    const line = { label: 'Events', total, values, previous: undefined };
    return { buckets, interval, timeZone, partial: partialBuckets(response), lines: [line] };
  }, [response]);
  return (
    <>
      <p class="muted">
        {formatCount(total, 'event')} in the last {drawn.buckets.length} days, of which today is not over.
      </p>
      <SeriesChart {...drawn} label="Chart of events by day">
        <SeriesTable {...drawn} />
      </SeriesChart>
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
          {response.series.map(({ group: [key], total }) => {
            const event = String(key);
            return (
              <tr key={event}>
                <th scope="row">
                  <a href={hrefOf(['events'], new URLSearchParams({ event, [filter]: id, ...personParams(path) }))}>
                    <bdi>{event}</bdi>
                  </a>
                </th>
                <td class="number">{formatNumber(total)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </>
  );
}
