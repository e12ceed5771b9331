import { useMemo } from 'preact/hooks';
import { type Activity, formatCount, formatNumber, getJson, hrefOf } from '../base/base.ts';
import { SeriesChart, SeriesTable } from '../charts/charts.ts';
import { NewestHint } from '../filters/filters.ts';
import { LoadState, useLoad } from '../parts/parts.ts';
import { apiPathOf, ENTITY_KINDS, type EntityProps } from './entity-kinds.ts';

/** What a user or an organization did in the last days. */
export function EntityActivity(entity: EntityProps) {
  const address = `${apiPathOf(entity)}/activity`;
  const loaded = useLoad(address, (signal) => getJson<Activity>(address, signal));
  const { data } = loaded;
  const total = data?.days.reduce((sum, { count }) => sum + count, 0) ?? 0;
  return (
    <section aria-labelledby="activity">
      <h2 id="activity">Activity</h2>
      <LoadState loaded={loaded} />
      {data && total === 0 && (
        <>
          <p class="muted">No events in the last {data.days.length} days.</p>
          <NewestHint filters={new URLSearchParams({ [ENTITY_KINDS[entity.path].filter]: entity.id })} />
        </>
      )}
      {data && total > 0 && <Days {...entity} activity={data} total={total} />}
    </section>
  );
}

interface DaysProps extends EntityProps {
  readonly activity: Activity;
  readonly total: number;
}

function Days({ path, id, activity: { days, events }, total }: DaysProps) {
  const { filter } = ENTITY_KINDS[path];
  const drawn = useMemo(() => {
    const line = { label: 'Events', total, values: days.map(({ count }) => count), previous: undefined };
    return { buckets: days.map(({ date }) => date), lines: [line] };
  }, [days]);
  return (
    <>
      <p class="muted">
        {formatCount(total, 'event')} in the last {days.length} days (UTC).
      </p>
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
          {events.map(({ event, count }) => (
            <tr key={event}>
              <th scope="row">
                <a href={hrefOf(['events'], new URLSearchParams({ event, [filter]: id }))}>
                  <bdi>{event}</bdi>
                </a>
              </th>
              <td class="number">{formatNumber(count)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}
