import { calendar, hrefOf } from '../base/base.ts';
import { eventFilters } from '../filters/filters.ts';
import { CopyButton } from '../parts/parts.ts';
import { SaveView } from '../views/save-view.tsx';
import { ExploreForm } from './explore-form.tsx';
import { ReportView } from './report-view.tsx';
import { REPORTS, type Report, reportOf, reportParams, switchReport } from './reports.ts';

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
            {REPORTS[one].title}
          </a>
        ))}
      </nav>
      <ExploreForm key={`form ${report}`} report={report} params={params} />
      <p class="bar">
        <a href={hrefOf(['events'], behind(report, params))}>These events</a>
        <CopyButton label="Copy the link" textOf={() => location.href} />
        <SaveView report={report} params={params} />
      </p>
      <ReportView key={`view ${report}`} report={report} params={params} />
    </>
  );
}

/** Returns the parameters of the events of a report. */
function behind(report: Report, params: URLSearchParams): URLSearchParams {
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
