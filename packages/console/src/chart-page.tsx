import { useMemo } from 'preact/hooks';
import { type EventSeries, getJson } from './api.ts';
import { partialBuckets } from './days.ts';
import { CHART_FIELDS } from './fields.ts';
import { FilterForm } from './filter-form.tsx';
import { without } from './filters.ts';
import { formatChange, formatNumber } from './format.ts';
import { Problem } from './problem.tsx';
import { hrefOf } from './route.ts';
import { type Line, linesOf, seriesParams } from './series.ts';
import { SeriesChart } from './series-chart.tsx';
import { SeriesTable } from './series-table.tsx';
import { strokeOf } from './stroke.ts';
import { TIME_ZONE, Time } from './time.tsx';
import { useLoad } from './use-load.ts';
import { SaveView } from './views/save-view.tsx';

/** A chart of `GET /events/series`, whose parameters the address has, and a table of the same numbers. */
export function ChartPage({ params }: { readonly params: URLSearchParams }) {
  const { data, error, isLoading } = useLoad(params.toString(), (signal) =>
    getJson<EventSeries>(`events/series?${seriesParams(params, TIME_ZONE, new Date())}`, signal),
  );
  return (
    <>
      <h1>Chart</h1>
      <FilterForm
        params={params}
        fields={CHART_FIELDS}
        onApply={(applied) => {
          location.hash = hrefOf(['chart'], applied);
        }}
      />
      <div class="bar">
        <p role="status">{isLoading ? 'Loading …' : data && `Total ${formatNumber(data.total)}.`}</p>
        <a href={hrefOf(['events'], without(params, 'range', 'interval', 'measure', 'groupBy', 'groups', 'compare'))}>
          These events
        </a>
        <SaveView report="series" params={params} />
      </div>
      {error && <Problem error={error} />}
      {data && <Results response={data} />}
    </>
  );
}

function Results({ response }: { readonly response: EventSeries }) {
  const { buckets, interval, timeZone, measure, startDate, endDate, complete, exact } = response;
  const lines = useMemo(() => linesOf(response), [response]);
  const partial = useMemo(() => partialBuckets(response), [response]);
  const subject = response.groupBy.length === 0 ? measure : `${measure} by ${response.groupBy.join(', ')}`;
  return (
    <>
      <p class="muted">
        <Time value={startDate} /> to <Time value={endDate} />, {timeZone}
        {partial.size > 0 && `; the numbers of a ${interval} that is only partly in it are marked as partial`}
      </p>
      {!complete && (
        <p class="notice">
          <strong>Incomplete:</strong> the query ran out of time. Times without numbers were not computed.
        </p>
      )}
      {!exact && (
        <p class="notice">
          <strong>Approximate:</strong> there are too many different values to count them exactly (error below 1 %).
        </p>
      )}
      {interval !== 'none' && (
        <SeriesChart
          {...{ buckets, interval, timeZone, lines, partial }}
          label={`Chart of ${subject} by ${interval}`}
        />
      )}
      <Totals response={response} lines={lines} subject={subject} />
      {interval !== 'none' && <SeriesTable {...{ buckets, interval, timeZone, lines, partial }} />}
    </>
  );
}

interface TotalsProps {
  readonly response: EventSeries;
  readonly lines: readonly Line[];
  readonly subject: string;
}

function Totals({ response, lines, subject }: TotalsProps) {
  const { total, previous } = response;
  const rows = [...lines, { label: 'Total', total, previous }];
  return (
    <table class="totals">
      <caption>Totals of {subject}</caption>
      <thead>
        <tr>
          <th scope="col">Group</th>
          <th scope="col" class="number">
            Total
          </th>
          {previous && (
            <>
              <th scope="col" class="number">
                Before
              </th>
              <th scope="col" class="number">
                Change
              </th>
            </>
          )}
        </tr>
      </thead>
      <tbody>
        {rows.map((row, index) => (
          <tr key={index}>
            <th scope="row">
              {index < lines.length && <Swatch index={index} />}
              {row.label}
            </th>
            <td class="number">{formatNumber(row.total)}</td>
            {previous && (
              <>
                <td class="number">{formatNumber(row.previous?.total ?? null)}</td>
                <td class="number">{formatChange(row.total, row.previous?.total ?? null)}</td>
              </>
            )}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Swatch({ index }: { readonly index: number }) {
  const { color, dash } = strokeOf(index);
  return <span class={`swatch color-${color} dash-${dash}`} />;
}
