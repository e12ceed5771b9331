import { useState } from 'preact/hooks';
import {
  calendar,
  type EventPage,
  formatNumber,
  getRecords,
  hrefOf,
  type Overview,
  patiently,
  settings,
  timeZone,
} from '../base/base.ts';
import { NewestHint } from '../filters/filters.ts';
import { PipelineState } from '../operate/operate.ts';
import { LoadState, Scrollable, useLoad } from '../parts/parts.ts';
import { PinnedDashboards } from '../views/views.ts';
import { FirstVisit } from './first-visit.tsx';
import { ChangeOf, datesOf, nameOfDay, Sparkline, WhatChanged } from './what-changed.tsx';

/** The page is read again so often: its days are over, and only what comes late changes them. */
const READ_EVERY_MS = 300_000;

/** What the morning asks: the numbers of yesterday, what was unusual about them, and the dashboards that were pinned. */
export function HomePage() {
  const [hasBegun, setHasBegun] = useState(false);
  const [isBusy, setIsBusy] = useState(false);
  const loaded = useLoad(
    `overview ${timeZone.value} ${hasBegun}`,
    async (signal) => {
      setIsBusy(false);
      const path = `overview?timeZone=${encodeURIComponent(calendar.value.timeZone)}`;
      return await patiently(
        () => getRecords<Overview>(path, signal),
        signal,
        () => setIsBusy(true),
      );
    },
    READ_EVERY_MS,
  );
  const { data, isLoading } = loaded;
  return (
    <>
      <h1>Home</h1>
      {isBusy && isLoading && <p class="notice">query-api is busy. Trying again …</p>}
      <LoadState loaded={loaded} />
      {data && <PipelineState />}
      {data && (isEmpty(data) ? <NothingLately onBegin={() => setHasBegun(true)} /> : <Morning overview={data} />)}
      {data && settings.value.pinned.length > 0 && <PinnedDashboards />}
    </>
  );
}

function isEmpty({ figures: [events] }: Overview): boolean {
  return events !== undefined && [...events.values, events.today].every((count) => count === 0);
}

/** Nothing happened in four weeks: either there was never an event, or the newest one is older. */
function NothingLately({ onBegin }: { readonly onBegin: () => void }) {
  const loaded = useLoad('any event', (signal) => getRecords<EventPage>('events?limit=1&total=none', signal));
  const { data } = loaded;
  if (!data) return <LoadState loaded={loaded} />;
  return data.results.length > 0 ? <NewestHint filters={new URLSearchParams()} /> : <FirstVisit onBegin={onBegin} />;
}

interface OverviewProps {
  readonly overview: Overview;
}

function Morning({ overview }: OverviewProps) {
  const { days, complete, exact, figures } = overview;
  const [yesterday, weekBefore] = [days.at(-1) ?? '', days.at(-8) ?? ''].map((day) => nameOfDay(day, true));
  return (
    <>
      <p class="muted">
        {yesterday}, beside {weekBefore}. Days are of {overview.timeZone}.
        {!exact && ' Large numbers of users are estimates.'}
      </p>
      {!complete && <p class="notice">Not everything could be computed in time.</p>}
      <dl class="morning">
        {figures.map((figure) => (
          <MorningFigure key={`${figure.measure} ${figure.days}`} {...{ figure, overview }} />
        ))}
      </dl>
      <WhatChanged overview={overview} />
      <TopEvents overview={overview} />
    </>
  );
}

type FigureOf = Overview['figures'][number];

const FIGURE_NAMES: Readonly<Record<FigureOf['measure'], string>> = {
  count: 'Events',
  users: 'Users',
  organizations: 'Organizations',
};

interface MorningFigureProps extends OverviewProps {
  readonly figure: FigureOf;
}

/** A number of yesterday, or of seven days, beside that of a week before. It leads to the chart of its own time. */
function MorningFigure({ figure, overview }: MorningFigureProps) {
  const { measure, days, value, previous, values, today } = figure;
  const isDay = days === 1;
  const own = new URLSearchParams({ measure, ...datesOf(overview, days), interval: isDay ? 'hour' : 'day' });
  const all = new URLSearchParams({ measure, ...datesOf(overview, overview.days.length), interval: 'day' });
  const term = isDay ? FIGURE_NAMES[measure] : `${FIGURE_NAMES[measure]} in ${days} days`;
  return (
    <div>
      <dt>{term}</dt>
      <dd class="figure">
        <a href={hrefOf(['explore'], own)}>{formatNumber(value)}</a>
      </dd>
      <dd>
        <ChangeOf value={value} before={previous} />{' '}
        <span class="muted">· a week before: {formatNumber(previous)}</span>
      </dd>
      <dd>
        <Sparkline values={isDay ? values.slice(1) : values} />
      </dd>
      <dd class="muted">
        <a href={hrefOf(['explore'], all)}>
          {isDay ? '28 days' : '4 weeks'}
          <span class="hidden"> of {term}</span>
        </a>
        {today !== null && ` · today so far: ${formatNumber(today)}`}
      </dd>
    </div>
  );
}

function TopEvents({ overview }: OverviewProps) {
  const { topEvents } = overview;
  const dates = datesOf(overview, 1);
  return (
    <section aria-labelledby="top">
      <h2 id="top">Most frequent events</h2>
      {topEvents.length === 0 ? (
        <p class="muted">Nothing happened yesterday.</p>
      ) : (
        <Scrollable label="Counts of the most frequent events">
          <table class="top-events">
            <caption>Yesterday, beside a week before</caption>
            <thead>
              <tr>
                <th scope="col">Event</th>
                <th scope="col" class="number">
                  Count
                </th>
                <th scope="col" class="number">
                  Before
                </th>
                <th scope="col">Change</th>
                <th scope="col">28 days</th>
              </tr>
            </thead>
            <tbody>
              {topEvents.map(({ event, count, values }) => (
                <tr key={event}>
                  <th scope="row">
                    <a href={hrefOf(['explore'], new URLSearchParams({ event, ...dates, interval: 'hour' }))}>
                      {event}
                    </a>
                  </th>
                  <td class="number">{formatNumber(count)}</td>
                  <td class="number">{formatNumber(values.at(-8) ?? null)}</td>
                  <td>
                    <ChangeOf value={count} before={values.at(-8) ?? null} />
                  </td>
                  <td>
                    <Sparkline values={values.slice(1)} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scrollable>
      )}
    </section>
  );
}
