import { calendar } from '../base/base.ts';
import { LoadState, useLoad } from '../parts/parts.ts';
import { ChartReport } from './chart-report.tsx';
import type { ReportBody } from './drawing.ts';
import { FunnelReport } from './funnel-report.tsx';
import { loadReport } from './load-report.ts';
import { faultsOf, isReady, type Report } from './reports.ts';
import { RetentionReport } from './retention-report.tsx';
import { ValuesReport } from './values-report.tsx';

/** What a report shows, by the parameters of the address that it was asked with. */
interface Shown {
  readonly body: ReportBody;
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
