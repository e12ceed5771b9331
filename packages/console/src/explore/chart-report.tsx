import { type EventSeries, formatNumber, hrefOf, isStackable, toDouble, without } from '../base/base.ts';
import { type Line, linesOf, partialBuckets } from '../charts/charts.ts';
import { CsvButton, type Table } from '../parts/parts.ts';
import { ChartDrawing } from './chart-drawing.tsx';
import { ReportNotes } from './drawing.tsx';
import { FORMS, formOf } from './reports.ts';

interface ChartReportProps {
  readonly response: EventSeries;
  readonly params: URLSearchParams;
}

/** A measure over time, by group, in the form that the address names, with all of its numbers. */
export function ChartReport({ response, params }: ChartReportProps) {
  const { interval, measure } = response;
  const isTimed = interval !== 'none';
  return (
    <>
      <div class="bar">
        <p role="status">{`Total ${formatNumber(toDouble(response.total))}.`}</p>
        {isTimed && <FormSwitch params={params} measure={measure} />}
      </div>
      <ReportNotes
        {...response}
        note={
          partialBuckets(response).size > 0 ? `; a ${interval} that is only partly in it is an open dot or hatched` : ''
        }
      />
      <ChartDrawing {...{ response, params }} form={formOf(params.get('form'))} hasTotals>
        <p class="bar">
          <CsvButton name="Totals" table={() => totalsTable(linesOf(response))} />
          {isTimed && <CsvButton name="All numbers" table={() => numbersTable(response, linesOf(response))} />}
        </p>
      </ChartDrawing>
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
  const current = formOf(params.get('form'));
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
