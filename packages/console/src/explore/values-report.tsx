import { type EventValues, formatNumber, formatShare, labelOfName } from '../base/base.ts';
import { labelOfKey } from '../charts/charts.ts';
import { beginningOf, CsvButton, NumberLink, Scrollable } from '../parts/parts.ts';
import { type DrawingProps, EmptyHint, partName, ReportNotes, ShareBar } from './drawing.tsx';
import { eventsHref, narrowedHref } from './drill-down.ts';

interface ValuesReportProps {
  readonly response: EventValues;
  readonly params: URLSearchParams;
}

/** The values of a property with how often each occurs. */
export function ValuesReport({ response, params }: ValuesReportProps) {
  const { results } = response;
  return (
    <>
      <p role="status">{`${formatNumber(results.length)} values.`}</p>
      <ReportNotes {...response} complete exact />
      <ValuesDrawing response={response} params={params} />
      {results.length > 0 && (
        <p class="bar">
          <CsvButton
            name="Values"
            table={() => ({
              columns: [labelOfProperty(params), countedIn(response)],
              rows: results.map(({ value, count }) => [labelOfKey(value), count]),
            })}
          />
        </p>
      )}
    </>
  );
}

/** The values with bars, or that there are none. */
export function ValuesDrawing(props: DrawingProps<EventValues>) {
  const { results, sampledEvents } = props.response;
  return (
    <>
      {sampledEvents !== null && results.length > 0 && (
        <p class="muted">
          Counted in the newest {formatNumber(sampledEvents)} matching events. To count all of them, break a chart down
          by it.
        </p>
      )}
      {results.length === 0 ? <EmptyHint params={props.params} /> : <ValueTable {...props} />}
    </>
  );
}

/** Returns what the numbers count: events, or those of the sample alone. */
function countedIn({ sampledEvents }: EventValues): string {
  return sampledEvents === null ? 'Events' : 'Events of the sample';
}

/** Returns the label of the property, which the response does not say. */
function labelOfProperty(params: URLSearchParams | undefined): string {
  return params ? labelOfName(params.get('property') ?? '') : 'Value';
}

function ValueTable({ response, params, title }: DrawingProps<EventValues>) {
  const { results, sampledEvents } = response;
  const name = params?.get('property') ?? '';
  const label = labelOfProperty(params);
  // An array counts for itself and for each of its items: the whole is the number of events, not the sum.
  const whole = sampledEvents ?? results.reduce((sum, { count }) => sum + count, 0);
  return (
    <Scrollable label={partName('Values', title)}>
      <table class="totals values">
        <caption>{params ? `Values of ${label}, the` : 'The'} most frequent first</caption>
        <thead>
          <tr>
            <th scope="col">{label}</th>
            <th scope="col" class="number">
              {countedIn(response)}
            </th>
            <th scope="col" class="number">
              Share
            </th>
          </tr>
        </thead>
        <tbody>
          {results.map(({ value, count }, index) => (
            <tr key={index}>
              <th scope="row">
                <ValueLink text={beginningOf(labelOfKey(value))} href={narrowedHref(params, [[name, value]])} />
                <ShareBar share={count / whole} />
              </th>
              <td class="number">
                <NumberLink
                  value={count}
                  href={eventsHref(params, response, [[name, value]])}
                  opens={sampledEvents === null ? 'events' : 'events, also those outside of the sample'}
                />
              </td>
              <td class="number">{formatShare(count / whole)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scrollable>
  );
}

function ValueLink({ text, href }: { readonly text: string; readonly href: string | undefined }) {
  if (href === undefined) return <bdi>{text}</bdi>;
  return (
    <a href={href} title="Filter by this value">
      <bdi>{text}</bdi>
    </a>
  );
}
