import { useMemo } from 'preact/hooks';
import type { EventSeries, EventValues, Funnel, Retention, View } from '../api.ts';
import { partialBuckets } from '../days.ts';
import { formatBucket, formatChange, formatDuration, formatNumber } from '../format.ts';
import { Legend } from '../legend.tsx';
import { linesOf } from '../series.ts';
import { SeriesChart } from '../series-chart.tsx';
import { SeriesTable } from '../series-table.tsx';
import { NumberTable } from './number-table.tsx';

export type Numbers = EventSeries | Funnel | Retention | EventValues;

interface ReportNumbersProps {
  readonly report: View['report'];
  readonly numbers: Numbers;
  /** How a series is drawn, if the view says so. */
  readonly form: string | null;
  readonly name: string;
}

/** The numbers of a report, drawn small. */
export function ReportNumbers({ report, numbers, form, name }: ReportNumbersProps) {
  const { complete = true, exact = true } = numbers as Partial<Funnel>;
  return (
    <>
      {!complete && <p class="notice">Incomplete: the query ran out of time.</p>}
      {!exact && <p class="notice">Approximate: there are too many different values to count them exactly.</p>}
      {report === 'series' && <Series numbers={numbers as EventSeries} form={form} name={name} />}
      {report === 'funnel' && <Steps numbers={numbers as Funnel} name={name} />}
      {report === 'retention' && <Cohorts numbers={numbers as Retention} name={name} />}
      {report === 'values' && <Values numbers={numbers as EventValues} name={name} />}
    </>
  );
}

interface Named<Of> {
  readonly numbers: Of;
  readonly name: string;
}

function Series({ numbers, form, name }: Named<EventSeries> & Pick<ReportNumbersProps, 'form'>) {
  const { buckets, interval, timeZone, total, previous } = numbers;
  const lines = useMemo(() => linesOf(numbers), [numbers]);
  const partial = useMemo(() => partialBuckets(numbers), [numbers]);
  const isNumber = form === 'number' || interval === 'none';
  return (
    <>
      <p class={isNumber ? 'total large' : 'total'}>
        <strong>{formatNumber(total)}</strong>
        {previous && ` ${formatChange(total, previous.total)}, before: ${formatNumber(previous.total)}`}
      </p>
      {!isNumber && lines.length > 1 && <Legend lines={lines} />}
      {!isNumber && (
        <SeriesChart
          {...{ buckets, interval, timeZone, lines, partial }}
          form={form === 'bar' || form === 'stacked' ? form : 'line'}
          label={`Chart of ${name}`}
        />
      )}
      {isNumber && lines.length > 1 && (
        <NumberTable
          caption={`${name} by ${numbers.groupBy.join(', ')}`}
          head={['Group', 'Total']}
          rows={lines.map((line) => [line.label, formatNumber(line.total)])}
        />
      )}
      {!isNumber && <SeriesTable {...{ buckets, interval, timeZone, lines, partial }} />}
    </>
  );
}

function Steps({ numbers: { steps }, name }: Named<Funnel>) {
  const first = steps[0]?.count ?? null;
  const share = (count: number | null) =>
    count === null || first === null || first === 0 ? '–' : `${formatNumber((100 * count) / first)} %`;
  return (
    <NumberTable
      caption={`Steps of ${name}`}
      head={['Step', 'Completed', 'Of the first', 'Median time']}
      rows={steps.map(({ event, count, medianSecondsFromPrevious }) => [
        event,
        formatNumber(count),
        share(count),
        formatDuration(medianSecondsFromPrevious),
      ])}
    />
  );
}

function Cohorts({ numbers: { cohorts, interval, timeZone, periods }, name }: Named<Retention>) {
  return (
    <NumberTable
      caption={`Users of ${name} who came back, by ${interval}`}
      head={['Began', ...Array.from({ length: periods }, (_, period) => `+${period}`)]}
      rows={cohorts.map(({ start, returned }) => [
        formatBucket(start, interval, timeZone),
        ...returned.map((users) => formatNumber(users)),
      ])}
    />
  );
}

function Values({ numbers: { results }, name }: Named<EventValues>) {
  return (
    <NumberTable
      caption={`Values of ${name}`}
      head={['Value', 'Events']}
      rows={results.map(({ value, count }) => [
        typeof value === 'string' ? value : JSON.stringify(value),
        formatNumber(count),
      ])}
    />
  );
}
