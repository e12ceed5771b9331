import type { ComponentChildren } from 'preact';
import { useMemo } from 'preact/hooks';
import {
  type EventPage,
  type EventSeries,
  formatChange,
  formatNumber,
  getRecords,
  hrefOf,
  isStackable,
  labelOfMeasure,
  labelOfName,
  toDouble,
  without,
} from '../base/base.ts';
import {
  type Line,
  linesOf,
  partialBuckets,
  SeriesChart,
  SeriesTable,
  SmallCharts,
  timeOfBuckets,
} from '../charts/charts.ts';
import { Figure, Problem, Time, useLoad } from '../parts/parts.ts';
import { ChartTotals } from './chart-totals.tsx';
import { type DrawingProps, EmptyHint, partName } from './drawing.tsx';
import { eventsHref, type Valued } from './drill-down.ts';
import type { ReportForm } from './reports.ts';

/** The bars of more groups, side by side, cannot be told apart: they are stacked or, where they do not add up, charts of their own. */
const SIDE_BY_SIDE_MAX = 4;

interface ChartDrawingProps extends DrawingProps<EventSeries> {
  readonly form: ReportForm;
  /** Whether a table has the totals. */
  readonly hasTotals: boolean;
  /** What stands before all numbers. */
  readonly children?: ComponentChildren;
}

/** A measure over time, by group, in a form, with its numbers as tables. */
export function ChartDrawing({ response, params, title, form: chosen, hasTotals, children }: ChartDrawingProps) {
  const { buckets, interval, timeZone, measure, startDate, endDate, complete } = response;
  const isTimed = interval !== 'none';
  const lines = useMemo(() => linesOf(response), [response]);
  const partial = useMemo(() => partialBuckets(response), [response]);
  const total = toDouble(response.total);
  const groups = response.groupBy.map(labelOfName).join(' and ');
  const subject = `${labelOfMeasure(measure)}${groups === '' ? '' : ` by ${groups}`}`;
  const isStacked = chosen === 'stacked' && isStackable(measure);
  const isMany =
    isTimed && lines.length > SIDE_BY_SIDE_MAX && (chosen === 'bar' || (chosen === 'stacked' && !isStacked));
  const form = chosen === 'stacked' && !isStacked ? 'bar' : isMany && isStackable(measure) ? 'stacked' : chosen;
  const isSmall = isMany && form === 'bar';
  const label = `Chart of ${title ?? `${subject} by ${interval}`}`;
  const marked = useMarkers(params?.get('markers') ?? '', { startDate, endDate });
  const valuesOf = (line: Line): Valued[] =>
    (line.group ?? []).map((value, index) => [response.groupBy[index] ?? '', value]);
  const hrefOfNumber = (bucket: number, line: number) => {
    const one = lines[line];
    if (!one || (response.other && one.group === undefined)) return undefined;
    return eventsHref(params, timeOfBuckets(response, bucket), valuesOf(one));
  };
  const numbers = (
    <SeriesTable
      {...{ buckets, interval, timeZone, lines, partial }}
      label={partName('All numbers', title)}
      hrefOf={hrefOfNumber}
    />
  );
  return (
    <>
      {chosen === 'stacked' && !isStacked && <p class="notice">{labelOfMeasure(measure)} of groups do not add up.</p>}
      {isMany && title === undefined && (
        <p class="muted">More than four groups {isSmall ? 'have a chart each, with one scale.' : 'are stacked.'}</p>
      )}
      {complete && !total && lines.every((line) => !line.total) && <EmptyHint params={params} />}
      {form === 'number' && (
        <ChartNumbers lines={lines} total={total} previous={toDouble(response.previous?.total ?? null)} />
      )}
      <div class="drawing">
        {isSmall && <SmallCharts {...{ buckets, interval, timeZone, lines }} label={label} />}
        {isTimed && !isSmall && form !== 'number' && (
          <SeriesChart
            {...{ buckets, interval, timeZone, lines, partial, form }}
            isBare={title !== undefined}
            markers={marked.times}
            label={label}
            {...(params &&
              title === undefined && {
                hrefOf: (index: number) => eventsHref(params, timeOfBuckets(response, index)) ?? '',
                onZoom: (first: number, last: number) => zoomTo(params, timeOfBuckets(response, first, last)),
              })}
          >
            {numbers}
          </SeriesChart>
        )}
        {hasTotals && <ChartTotals {...{ response, lines, subject, params, title, valuesOf }} hasBars={!isTimed} />}
      </div>
      {title === undefined && <Markers {...marked} range={{ startDate, endDate }} />}
      {children}
      {isTimed && title === undefined && (form === 'number' || isSmall) && numbers}
    </>
  );
}

/** Opens the chart of some of its time. */
function zoomTo(params: URLSearchParams, time: ReturnType<typeof timeOfBuckets>): void {
  const zoomed = without(params, 'range', 'startDate', 'endDate', 'interval');
  for (const [name, value] of Object.entries(time)) zoomed.set(name, value);
  location.hash = hrefOf(['explore'], zoomed);
}

interface ChartNumbersProps {
  readonly lines: readonly Line[];
  readonly total: number | null;
  /** The total of the time before; `null` if none was asked for. */
  readonly previous: number | null;
}

/** The total of a chart, and that of each group, as large numbers. */
function ChartNumbers({ lines, total, previous }: ChartNumbersProps) {
  const figures = lines.map((line) => ({ ...line, before: line.previous?.total ?? null }));
  const isGrouped = lines.length > 1 || lines[0]?.group?.length !== 0;
  const all = isGrouped ? [{ label: 'Total', total, before: previous }, ...figures] : figures;
  return (
    <dl class="figures">
      {all.map(({ label, total, before }, index) => (
        <Figure key={index} term={label} value={formatNumber(total)}>
          {before !== null && `${formatChange(total, before)}, before: ${formatNumber(before)}`}
        </Figure>
      ))}
    </dl>
  );
}

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
  /** When each of them happened, in milliseconds since 1970. */
  readonly times: readonly number[];
  readonly error: Error | undefined;
}

/** Loads the events of a name that a chart marks, such as deployments. */
function useMarkers(event: string, { startDate, endDate }: Range): Marked {
  const query = new URLSearchParams({ event, startDate, endDate, limit: String(MARKERS_MAX), total: 'none' });
  const { data, error } = useLoad(query.toString(), async (signal) =>
    event === '' ? undefined : await getRecords<EventPage>(`events?${query}`, signal),
  );
  const events = data?.results ?? [];
  const times = useMemo(() => events.map(({ timestamp }) => Date.parse(timestamp)), [data]);
  return { event, events, times, error };
}

/** Lists what {@link useMarkers} has found, for those who do not see the lines. */
function Markers({ event, events, error, range }: Marked & { readonly range: Range }) {
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
            <Time value={timestamp} full />
          </li>
        ))}
      </ul>
      <a href={hrefOf(['events'], new URLSearchParams({ event, ...range }))}>These events</a>
    </details>
  );
}
