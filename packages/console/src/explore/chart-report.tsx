import { useMemo } from 'preact/hooks';
import type { EventSeries } from '../api.ts';
import { timeOfBuckets } from '../bucket-time.ts';
import type { Table } from '../csv.ts';
import { CsvButton } from '../csv-button.tsx';
import { partialBuckets } from '../days.ts';
import { without } from '../filters.ts';
import { formatNumber } from '../format.ts';
import { isStackable, labelOfMeasure, labelOfName } from '../names.ts';
import { toDouble } from '../records.ts';
import { hrefOf } from '../route.ts';
import { type Line, linesOf } from '../series.ts';
import { SeriesChart } from '../series-chart.tsx';
import { SeriesTable } from '../series-table.tsx';
import { ChartNumbers } from './chart-numbers.tsx';
import { ChartTotals } from './chart-totals.tsx';
import { eventsHref, type Valued } from './drill-down.ts';
import { EmptyHint } from './empty-hint.tsx';
import { Markers, useMarkers } from './markers.tsx';
import { ReportNotes } from './report-notes.tsx';
import { FORMS, formOf } from './reports.ts';

interface ChartReportProps {
  readonly response: EventSeries;
  readonly params: URLSearchParams;
}

/** A measure over time, by group, in the form that the address names, with all of its numbers. */
export function ChartReport({ response, params }: ChartReportProps) {
  const { interval, timeZone, measure, startDate, endDate } = response;
  const isTimed = interval !== 'none';
  const lines = useMemo(() => linesOf(response), [response]);
  const partial = useMemo(() => partialBuckets(response), [response]);
  const buckets = response.buckets;
  const total = toDouble(response.total);
  const groups = response.groupBy.map(labelOfName).join(' and ');
  const subject = `${labelOfMeasure(measure)}${groups === '' ? '' : ` by ${groups}`}`;
  const chosen = formOf(params);
  const isStacked = chosen === 'stacked' && isStackable(measure);
  const form = chosen === 'stacked' && !isStacked ? 'bar' : chosen;
  const marked = useMarkers(params.get('markers') ?? '', { startDate, endDate });
  const valuesOf = (line: Line): Valued[] =>
    (line.group ?? []).map((value, index) => [response.groupBy[index] ?? '', value]);
  const hrefOfNumber = (bucket: number, line: number) => {
    const one = lines[line];
    if (!one || (response.other && one.group === undefined)) return undefined;
    return eventsHref(params, timeOfBuckets(response, bucket), valuesOf(one));
  };
  return (
    <>
      <div class="bar">
        <p role="status">{`Total ${formatNumber(total)}.`}</p>
        {isTimed && <FormSwitch params={params} measure={measure} />}
      </div>
      <ReportNotes
        {...response}
        note={partial.size > 0 ? `; a ${interval} that is only partly in it is dotted or pale, on a shaded ground` : ''}
      />
      {chosen === 'stacked' && !isStacked && <p class="notice">{labelOfMeasure(measure)} of groups do not add up.</p>}
      {response.complete && (total === 0 || total === null) && lines.every(({ total }) => !total) && (
        <EmptyHint params={params} />
      )}
      {form === 'number' && (
        <ChartNumbers lines={lines} total={total} previous={toDouble(response.previous?.total ?? null)} />
      )}
      {isTimed && form !== 'number' && (
        <SeriesChart
          {...{ buckets, interval, timeZone, lines, partial, form }}
          markers={marked.times}
          label={`Chart of ${subject} by ${interval}`}
          hrefOf={(index) => eventsHref(params, timeOfBuckets(response, index)) ?? ''}
          onZoom={(first, last) => {
            const zoomed = without(params, 'range', 'startDate', 'endDate', 'interval');
            for (const [name, value] of Object.entries(timeOfBuckets(response, first, last))) zoomed.set(name, value);
            location.hash = hrefOf(['explore'], zoomed);
          }}
        />
      )}
      <Markers {...marked} range={{ startDate, endDate }} />
      <ChartTotals {...{ response, lines, subject, params, valuesOf }} hasBars={!isTimed} />
      <p class="bar">
        <CsvButton name="Totals" table={() => totalsTable(lines)} />
        {isTimed && <CsvButton name="All numbers" table={() => numbersTable(response, lines)} />}
      </p>
      {isTimed && <SeriesTable {...{ buckets, interval, timeZone, lines, partial }} hrefOf={hrefOfNumber} />}
    </>
  );
}

function totalsTable(lines: readonly Line[]): Table {
  const columns = ['Group', 'Total', 'Before'];
  return { columns, rows: lines.map(({ label, total, previous }) => [label, total, previous?.total ?? null]) };
}

function numbersTable({ buckets }: EventSeries, lines: readonly Line[]): Table {
  const rows = buckets.map((bucket, index) => [bucket, ...lines.map(({ values }) => values[index] ?? null)]);
  return { columns: ['Begins', ...lines.map(({ label }) => label)], rows };
}

/** Links to the forms of the chart. */
function FormSwitch({ params, measure }: { readonly params: URLSearchParams; readonly measure: string }) {
  const current = formOf(params);
  return (
    <nav class="switch" aria-label="Form of the chart">
      {Object.entries(FORMS)
        .filter(([form]) => form !== 'stacked' || isStackable(measure))
        .map(([form, title]) => {
          const href = hrefOf(['explore'], new URLSearchParams([...without(params, 'form'), ['form', form]]));
          return (
            <a key={form} href={href} aria-current={form === current ? 'true' : undefined}>
              {title}
            </a>
          );
        })}
    </nav>
  );
}
