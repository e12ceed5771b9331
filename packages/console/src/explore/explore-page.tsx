import { ApiError, type Calendar, calendar, getRecords, hrefOf } from '../base/base.ts';
import { eventFilters } from '../filters/filters.ts';
import { CopyButton, LoadState, useLoad } from '../parts/parts.ts';
import { ChartReport } from './chart-report.tsx';
import type { ReportBody } from './drawing.tsx';
import { ExploreForm } from './explore-form.tsx';
import { FunnelReport } from './funnel-report.tsx';
import { faultsOf, isReady, REPORTS, type Report, reportOf, reportParams, switchReport } from './reports.ts';
import { RetentionReport } from './retention-report.tsx';
import { SaveView } from './save-view.tsx';
import { ValuesReport } from './values-report.tsx';
import { parametersOf, REPORT_TITLES } from './view-address.ts';

/** A chart, a funnel, retention or the values of a property, as the address says. */
export function ExplorePage({ params }: { readonly params: URLSearchParams }) {
  const report = reportOf(params);
  return (
    <>
      <h1>Explore</h1>
      <nav class="switch" aria-label="Reports">
        {(Object.keys(REPORTS) as Report[]).map((one) => (
          <a
            key={one}
            href={hrefOf(['explore'], one === report ? params : switchReport(params, one))}
            aria-current={one === report ? 'page' : undefined}
          >
            {REPORT_TITLES[one]}
          </a>
        ))}
      </nav>
      <ExploreForm key={`form ${report}`} report={report} params={params} />
      <p class="bar">
        <a href={hrefOf(['events'], paramsOfEvents(report, params))}>These events</a>
        <CopyButton label="Copy the link" textOf={() => location.href} />
        <SaveView report={report} parameters={parametersOf(params, calendar.value)} id={params.get('view')} />
      </p>
      <ReportView key={`view ${report}`} report={report} params={params} />
    </>
  );
}

/** Returns the parameters of the events of a report. */
function paramsOfEvents(report: Report, params: URLSearchParams): URLSearchParams {
  const events = eventFilters(params);
  const query = reportParams(report, params, calendar.value, new Date());
  for (const name of ['startDate', 'endDate']) {
    const date = query.get(name);
    if (date !== null) events.set(name, date);
  }
  const steps = query.get('steps');
  if (steps !== null) events.set('event[in]', steps);
  return events;
}

/** What a report shows, by the parameters of the address that it was asked with. */
interface Shown {
  readonly body: ReportBody;
  readonly params: URLSearchParams;
}

interface ReportViewProps {
  readonly report: Report;
  readonly params: URLSearchParams;
}

/** Loads a report and shows it, or what went wrong; the form says what is missing. Give it the key of its report. */
function ReportView({ report, params }: ReportViewProps) {
  // With faults query-api is asked all the same, so that all of them are said.
  if (!isReady(report, params) && faultsOf(params).length === 0) return null;
  return <LoadedReport report={report} params={params} />;
}

function LoadedReport({ report, params }: ReportViewProps) {
  const loaded = useLoad<Shown>(`${params} ${Object.values(calendar.value)}`, async (signal) => ({
    body: await loadReport<ReportBody>(report, params, calendar.value, signal),
    params,
  }));
  const { data, isLoading } = loaded;
  return (
    <>
      <LoadState loaded={loaded} status={null} />
      {data && (
        <div class={isLoading ? 'stale' : undefined}>
          <Numbers report={report} {...data} />
        </div>
      )}
    </>
  );
}

function Numbers({ report, body, params }: Shown & { readonly report: Report }) {
  switch (report) {
    case 'series':
      return <ChartReport response={body} params={params} />;
    case 'funnel':
      return <FunnelReport response={body} params={params} />;
    case 'retention':
      return <RetentionReport response={body} params={params} />;
    case 'values':
      return <ValuesReport response={body} params={params} />;
  }
}

/**
 * Loads a report.
 *
 * @throws {ApiError} as `request` does. It names the faults of the console's own parameters as well
 */
async function loadReport<Body>(
  report: Report,
  params: URLSearchParams,
  calendar: Calendar,
  signal: AbortSignal,
): Promise<Body> {
  const faults = faultsOf(params);
  const query = reportParams(report, params, calendar, new Date());
  try {
    const body = await getRecords<Body>(`${REPORTS[report].path}?${query}`, signal);
    if (faults.length === 0) return body;
  } catch (error) {
    if (faults.length === 0 || !(error instanceof ApiError) || error.status !== 400) throw error;
    faults.push(...error.errors);
  }
  throw new ApiError(400, 'The address has parameters that cannot be used.', faults);
}
