import type { ComponentChildren } from 'preact';
import { useMemo } from 'preact/hooks';
import { type EventSeries, hrefOf, isStackable, labelOfMeasure, labelOfName, toDouble, without } from '../base/base.ts';
import { type Line, linesOf, partialBuckets, SeriesChart, SeriesTable, timeOfBuckets } from '../charts/charts.ts';
import { ChartNumbers } from './chart-numbers.tsx';
import { ChartTotals } from './chart-totals.tsx';
import { type DrawingProps, partName } from './drawing.ts';
import { eventsHref, type Valued } from './drill-down.ts';
import { EmptyHint } from './empty-hint.tsx';
import { Markers, useMarkers } from './markers.tsx';
import type { ReportForm } from './reports.ts';

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
  const form = chosen === 'stacked' && !isStacked ? 'bar' : chosen;
  const marked = useMarkers(params?.get('markers') ?? '', { startDate, endDate });
  const valuesOf = (line: Line): Valued[] =>
    (line.group ?? []).map((value, index) => [response.groupBy[index] ?? '', value]);
  const hrefOfNumber = (bucket: number, line: number) => {
    const one = lines[line];
    if (!one || (response.other && one.group === undefined)) return undefined;
    return eventsHref(params, timeOfBuckets(response, bucket), valuesOf(one));
  };
  return (
    <>
      {chosen === 'stacked' && !isStacked && <p class="notice">{labelOfMeasure(measure)} of groups do not add up.</p>}
      {complete && !total && lines.every((line) => !line.total) && <EmptyHint params={params} />}
      {form === 'number' && (
        <ChartNumbers lines={lines} total={total} previous={toDouble(response.previous?.total ?? null)} />
      )}
      {isTimed && form !== 'number' && (
        <SeriesChart
          {...{ buckets, interval, timeZone, lines, partial, form }}
          markers={marked.times}
          label={`Chart of ${title ?? `${subject} by ${interval}`}`}
          {...(params && {
            hrefOf: (index: number) => eventsHref(params, timeOfBuckets(response, index)) ?? '',
            onZoom: (first: number, last: number) => zoomTo(params, timeOfBuckets(response, first, last)),
          })}
        />
      )}
      <Markers {...marked} range={{ startDate, endDate }} />
      {hasTotals && <ChartTotals {...{ response, lines, subject, params, title, valuesOf }} hasBars={!isTimed} />}
      {children}
      {isTimed && (
        <SeriesTable
          {...{ buckets, interval, timeZone, lines, partial }}
          label={partName('All numbers', title)}
          hrefOf={hrefOfNumber}
        />
      )}
    </>
  );
}

/** Opens the chart of some of its time. */
function zoomTo(params: URLSearchParams, time: ReturnType<typeof timeOfBuckets>): void {
  const zoomed = without(params, 'range', 'startDate', 'endDate', 'interval');
  for (const [name, value] of Object.entries(time)) zoomed.set(name, value);
  location.hash = hrefOf(['explore'], zoomed);
}
