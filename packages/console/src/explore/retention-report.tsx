import { calendar, formatBucket, formatCount, formatShare, type Retention } from '../base/base.ts';
import { partialBuckets, timeOfBuckets } from '../charts/charts.ts';
import { CsvButton, NumberLink, Scrollable, type Table } from '../parts/parts.ts';
import { type DrawingProps, EmptyHint, partName, ReportNotes } from './drawing.tsx';
import { eventsHref } from './drill-down.ts';
import { peopleHref } from './people.ts';

interface RetentionReportProps {
  readonly response: Retention;
  readonly params: URLSearchParams;
}

/** The style sheet has so many shades. */
const SHADES = 10;

/** How many of each cohort came back, interval by interval. */
export function RetentionReport({ response, params }: RetentionReportProps) {
  const { cohorts, interval } = response;
  const users = usersOf(response);
  return (
    <>
      <p role="status">
        {response.complete && `${formatCount(users, 'user')} in ${formatCount(cohorts.length, 'cohort')}.`}
      </p>
      <ReportNotes {...response} />
      <RetentionDrawing response={response} params={params} />
      {users > 0 && (
        <p class="bar">
          <CsvButton name="Retention" table={() => tableOf(response)} />
          <span class="muted">A number opens the users, a date the events of that {interval}.</span>
        </p>
      )}
    </>
  );
}

function usersOf({ cohorts }: Retention): number {
  return cohorts.reduce((sum, { size }) => sum + size, 0);
}

/** The cohorts with shaded cells, or that there are none. */
export function RetentionDrawing(props: DrawingProps<Retention>) {
  if (usersOf(props.response) > 0) return <CohortTable {...props} />;
  return props.response.complete ? <EmptyHint params={props.params} /> : null;
}

function CohortTable({ response, params, title }: DrawingProps<Retention>) {
  const { cohorts, interval, periods, timeZone } = response;
  const columns = Math.min(periods, cohorts.length);
  const buckets = cohorts.map(({ start }) => start);
  const isPartial = partialBuckets({ ...response, buckets }).has(buckets.at(-1) ?? '');
  const peopleOf = (start: string, period?: number) =>
    peopleHref('retention', params, calendar.value, {
      ...{ startDate: response.startDate, endDate: response.endDate, interval, timeZone },
      ...{ cohort: start, ...(period !== undefined && { period: String(period) }) },
    });
  return (
    <Scrollable label={partName('Retention', title)}>
      <table class="numbers cohorts">
        <caption>
          Users by the {interval} of their first event, and how many came back so many {interval}s later
          {isPartial && `; the last ${interval} is only partly in the range, so the last number of a row may grow`}
        </caption>
        <thead>
          <tr>
            <th scope="col">Cohort</th>
            <th scope="col" class="number">
              Users
            </th>
            {Array.from({ length: columns }, (_, period) => (
              <th key={period} scope="col" class="number">
                {period === 0 ? `Same ${interval}` : `+${period}`}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {cohorts.map(({ start, size, returned }, row) => (
            <tr key={start}>
              <th scope="row">
                <CohortName {...{ response, params, buckets, row }} />
              </th>
              <td class="number">
                <NumberLink value={size} href={peopleOf(start)} opens="users" />
              </td>
              {Array.from({ length: columns }, (_, period) => {
                // What is after the range has not been counted.
                const count = row + period < cohorts.length && size > 0 ? (returned[period] ?? 0) : undefined;
                return (
                  <td key={period} class={`number ${shadeOf(count ?? 0, size)}`}>
                    {count !== undefined && (
                      <NumberLink
                        value={count}
                        text={formatShare(count / size)}
                        href={peopleOf(start, period)}
                        opens="users"
                      />
                    )}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </Scrollable>
  );
}

interface CohortNameProps extends DrawingProps<Retention> {
  /** When each cohort begins. */
  readonly buckets: readonly string[];
  readonly row: number;
}

/** When a cohort begins, which opens its events. */
function CohortName({ response, params, buckets, row }: CohortNameProps) {
  const start = buckets[row] ?? '';
  const name = <time dateTime={start}>{formatBucket(start, response.interval, response.timeZone)}</time>;
  const href = eventsHref(params, timeOfBuckets({ ...response, buckets }, row));
  return href === undefined ? name : <a href={href}>{name}</a>;
}

function shadeOf(count: number, size: number): string {
  return count === 0 || size === 0 ? '' : `shade-${Math.ceil((SHADES * count) / size)}`;
}

function tableOf({ cohorts, periods }: Retention): Table {
  const columns = Math.min(periods, cohorts.length);
  return {
    columns: ['Cohort', 'Users', ...Array.from({ length: columns }, (_, period) => `Interval ${period}`)],
    rows: cohorts.map(({ start, size, returned }, row) => [
      start,
      size,
      ...Array.from({ length: columns }, (_, period) =>
        row + period < cohorts.length ? (returned[period] ?? null) : null,
      ),
    ]),
  };
}
