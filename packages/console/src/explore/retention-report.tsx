import {
  calendar,
  formatBucket,
  formatCount,
  formatNumber,
  formatShare,
  isPropertyName,
  labelOfName,
  type Retention,
} from '../base/base.ts';
import { type GroupKey, labelOfKey, partialBuckets, timeOfBuckets } from '../charts/charts.ts';
import { CsvButton, NumberLink, Scrollable, type Table } from '../parts/parts.ts';
import { type DrawingProps, EmptyHint, partName, ReportNotes } from './drawing.tsx';
import { eventsHref, narrowedHref } from './drill-down.ts';
import { peopleHref, whoOf } from './people.ts';
import { RetentionCurve } from './retention-curve.tsx';

interface RetentionReportProps {
  readonly response: Retention;
  readonly params: URLSearchParams;
}

type Cohorts = Retention['cohorts'];

/** The style sheet has so many shades. */
const SHADES = 10;

/** How many of each cohort came back, interval by interval, and how many of each group. */
export function RetentionReport({ response, params }: RetentionReportProps) {
  const { cohorts, interval, groups = [], groupBy: [name = ''] = [] } = response;
  const count = countOf(cohorts);
  const who = whoOf(params).toLowerCase();
  return (
    <>
      <p role="status">
        {response.complete && `${formatCount(count, who.slice(0, -1))} in ${formatCount(cohorts.length, 'cohort')}.`}
      </p>
      <ReportNotes {...response} />
      <RetentionDrawing response={response} params={params} />
      {groups.map(({ group: [key], cohorts: own }, index) => (
        <details key={index}>
          <summary>
            The cohorts of {labelOfName(name)} <bdi>{labelOfKey(key as GroupKey)}</bdi>
          </summary>
          <CohortTable {...{ response, params }} cohorts={own} group={key as GroupKey} />
        </details>
      ))}
      {count > 0 && (
        <p class="bar">
          <CsvButton name="Retention" table={() => tableOf(response, whoOf(params))} />
          <span class="muted">
            A number of a cohort opens the {who}, a date the events of that {interval}.
          </span>
        </p>
      )}
    </>
  );
}

function countOf(cohorts: Cohorts): number {
  return cohorts.reduce((sum, { size }) => sum + size, 0);
}

/** The groups, if there are some, and the cohorts with shaded cells, or that there are none. */
export function RetentionDrawing(props: DrawingProps<Retention>) {
  const { response, params } = props;
  const { cohorts, groups, complete } = response;
  if (countOf(cohorts) === 0) return complete ? <EmptyHint params={params} /> : null;
  return (
    <>
      <RetentionCurve curves={curvesOf(response)} interval={response.interval} title={props.title} />
      {groups && <GroupTable {...props} groups={groups} />}
      <CohortTable {...props} cohorts={cohorts} />
    </>
  );
}

/** Returns the curve of each group, or that of all. */
function curvesOf({ cohorts, periods, groups }: Retention) {
  const columns = Math.min(periods, cohorts.length);
  if (!groups) return [{ label: 'All', shares: sharesOf(cohorts, columns) }];
  return groups.map(({ group: [key], cohorts: own }) => ({
    label: labelOfKey(key as GroupKey),
    shares: sharesOf(own, columns),
  }));
}

/**
 * Returns which share of all cohorts together came back, from 0 to 1, for 0, 1, 2, … intervals later. A cohort counts while that
 * interval is in the range; `null` where there is nobody to count.
 *
 * @param columns for how many intervals
 */
export function sharesOf(cohorts: Cohorts, columns: number): (number | null)[] {
  return Array.from({ length: columns }, (_, period) => {
    const counted = cohorts.slice(0, cohorts.length - period);
    const size = counted.reduce((sum, cohort) => sum + cohort.size, 0);
    const returned = counted.reduce((sum, cohort) => sum + (cohort.returned[period] ?? 0), 0);
    return size === 0 ? null : returned / size;
  });
}

interface GroupTableProps extends DrawingProps<Retention> {
  readonly groups: NonNullable<Retention['groups']>;
}

/** How many of each group came back, of all cohorts together. */
function GroupTable({ response, params, title, groups }: GroupTableProps) {
  const { cohorts, interval, periods, groupBy: [name = ''] = [] } = response;
  const who = params ? whoOf(params) : 'People';
  const columns = Math.min(periods, cohorts.length);
  const rowOf = (own: Cohorts) => (
    <>
      <td class="number">{formatNumber(countOf(own))}</td>
      {sharesOf(own, columns).map((share, period) => (
        <td key={period} class={`number ${shadeOf(share ?? 0, 1)}`}>
          {share !== null && formatShare(share)}
        </td>
      ))}
    </>
  );
  return (
    <Scrollable label={partName('Groups', title)}>
      <table class="numbers cohorts">
        <caption>
          {who} by {labelOfName(name)}, and how many of them came back so many {interval}s later: of each number, the
          cohorts for which that time is in the range
        </caption>
        <CohortHead {...{ who, interval, columns }} first={labelOfName(name)} />
        <tbody>
          {groups.map(({ group: [key], cohorts: own }, index) => {
            const label = labelOfKey(key as GroupKey);
            const href = isPropertyName(name) ? narrowedHref(params, [[name, key]]) : undefined;
            return (
              <tr key={index}>
                <th scope="row">
                  <bdi>{href === undefined ? label : <a href={href}>{label}</a>}</bdi>
                </th>
                {rowOf(own)}
              </tr>
            );
          })}
          <tr>
            <th scope="row">All</th>
            {rowOf(cohorts)}
          </tr>
        </tbody>
      </table>
    </Scrollable>
  );
}

interface CohortHeadProps {
  /** What the first column has. */
  readonly first: string;
  readonly who: string;
  readonly interval: string;
  /** How many intervals there are. */
  readonly columns: number;
}

function CohortHead({ first, who, interval, columns }: CohortHeadProps) {
  return (
    <thead>
      <tr>
        <th scope="col">{first}</th>
        <th scope="col" class="number">
          {who}
        </th>
        {Array.from({ length: columns }, (_, period) => (
          <th key={period} scope="col" class="number">
            {period === 0 ? `Same ${interval}` : `+${period}`}
          </th>
        ))}
      </tr>
    </thead>
  );
}

interface CohortTableProps extends DrawingProps<Retention> {
  readonly cohorts: Cohorts;
  /** The key of their group. Default: they are of all groups. */
  readonly group?: GroupKey;
}

function CohortTable({ response, params, title, cohorts, group }: CohortTableProps) {
  const { interval, periods, timeZone } = response;
  const who = params ? whoOf(params) : 'People';
  const columns = Math.min(periods, cohorts.length);
  const buckets = cohorts.map(({ start }) => start);
  const isPartial = partialBuckets({ ...response, buckets }).has(buckets.at(-1) ?? '');
  const peopleOf = (start: string, period?: number) =>
    peopleHref('retention', params, calendar.value, {
      ...{ startDate: response.startDate, endDate: response.endDate, interval, timeZone },
      ...{ cohort: start, ...(period !== undefined && { period: String(period) }) },
      ...(group !== undefined && { group: JSON.stringify(group) }),
    });
  return (
    <Scrollable label={partName('Retention', title)}>
      <table class="numbers cohorts">
        <caption>
          {who} by the {interval} of their first event, and how many came back so many {interval}s later
          {isPartial && `; the last ${interval} is only partly in the range, so the last number of a row may grow`}
        </caption>
        <CohortHead {...{ who, interval, columns }} first="Cohort" />
        <tbody>
          {cohorts.map(({ start, size, returned }, row) => (
            <tr key={start}>
              <th scope="row">
                <CohortName {...{ response, params, buckets, row, group }} />
              </th>
              <td class="number">
                <NumberLink value={size} href={peopleOf(start)} opens={who.toLowerCase()} />
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
                        opens={who.toLowerCase()}
                      />
                    )}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
        <tfoot>
          <tr>
            <th scope="row">Mean</th>
            <td class="number">{formatNumber(countOf(cohorts))}</td>
            {sharesOf(cohorts, columns).map((share, period) => (
              <td key={period} class={`number ${shadeOf(share ?? 0, 1)}`}>
                {share !== null && formatShare(share)}
              </td>
            ))}
          </tr>
        </tfoot>
      </table>
    </Scrollable>
  );
}

interface CohortNameProps extends DrawingProps<Retention> {
  /** When each cohort begins. */
  readonly buckets: readonly string[];
  readonly row: number;
  /** The key of the group that it is of; `undefined` for all of them. */
  readonly group: GroupKey | undefined;
}

/** When a cohort begins, which opens its events. */
function CohortName({ response, params, buckets, row, group }: CohortNameProps) {
  const [grouped = ''] = response.groupBy ?? [];
  const start = buckets[row] ?? '';
  const name = <time dateTime={start}>{formatBucket(start, response.interval, response.timeZone)}</time>;
  const time = timeOfBuckets({ ...response, buckets }, row);
  const href = eventsHref(params, time, group === undefined ? [] : [[grouped, group]]);
  return href === undefined ? name : <a href={href}>{name}</a>;
}

function shadeOf(count: number, size: number): string {
  return count === 0 || size === 0 ? '' : `shade-${Math.ceil((SHADES * count) / size)}`;
}

function tableOf({ cohorts, periods, groups = [], groupBy = [] }: Retention, who: string): Table {
  const columns = Math.min(periods, cohorts.length);
  const rowsOf = (group: readonly string[], of: Cohorts) =>
    of.map(({ start, size, returned }, row) => [
      ...group,
      start,
      size,
      ...Array.from({ length: columns }, (_, period) =>
        row + period < cohorts.length ? (returned[period] ?? null) : null,
      ),
    ]);
  const all = groupBy.map(() => 'All');
  return {
    columns: [
      ...groupBy.map(labelOfName),
      ...['Cohort', who, ...Array.from({ length: columns }, (_, period) => `Interval ${period}`)],
    ],
    rows: [
      ...rowsOf(all, cohorts),
      ...groups.flatMap(({ group: [key], cohorts: own }) => rowsOf([labelOfKey(key as GroupKey)], own)),
    ],
  };
}
