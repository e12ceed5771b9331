import type { EventSeries, EventValues, Funnel, Retention } from '../api.ts';
import { calendar } from '../current-settings.ts';
import { ChartReport } from './chart-report.tsx';
import { FunnelReport } from './funnel-report.tsx';
import { loadReport } from './load-report.ts';
import { faultsOf, isReady, type Report } from './reports.ts';
import { RetentionReport } from './retention-report.tsx';
import { Stoppable } from './stoppable.tsx';
import { useStoppableLoad } from './use-stoppable-load.ts';
import { ValuesReport } from './values-report.tsx';

type Body = EventSeries & Funnel & Retention & EventValues;

/** What a report shows, by the parameters of the address that it was asked with. */
interface Shown {
  readonly body: Body;
  readonly params: URLSearchParams;
}

interface ReportViewProps {
  readonly report: Report;
  readonly params: URLSearchParams;
}

const MISSING: Readonly<Partial<Record<Report, string>>> = {
  funnel: 'Choose at least two steps, and apply.',
  values: 'Choose a property, and apply.',
};

/** Loads a report and shows it: the numbers, or what is missing, or what went wrong. Give it the key of its report. */
export function ReportView({ report, params }: ReportViewProps) {
  // With faults query-api is asked all the same, so that all of them are said.
  if (!isReady(report, params) && faultsOf(params).length === 0) return <p class="notice">{MISSING[report]}</p>;
  return <LoadedReport report={report} params={params} />;
}

function LoadedReport({ report, params }: ReportViewProps) {
  const load = useStoppableLoad<Shown>(`${params} ${Object.values(calendar.value)}`, async (signal) => ({
    body: await loadReport<Body>(report, params, calendar.value, signal),
    params,
  }));
  return <Stoppable load={load}>{(shown) => <Numbers report={report} {...shown} />}</Stoppable>;
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
