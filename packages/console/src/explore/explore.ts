// Reports: the page that explores them, the people behind their numbers, and how dashboards draw them.

export { ChartDrawing } from './chart-drawing.tsx';
export { ExplorePage, PeoplePage } from './deferred-pages.ts';
export { type DrawingProps, type ReportBody, ReportNotes } from './drawing.tsx';
export { eventsHref } from './drill-down.ts';
export { FunnelDrawing } from './funnel-report.tsx';
export { formOf } from './reports.ts';
export { RetentionDrawing } from './retention-report.tsx';
export { SaveView } from './save-view.tsx';
export { ValuesDrawing } from './values-report.tsx';
export { hrefOfView, pageOfReport, paramsOfView, REPORT_TITLES } from './view-address.ts';
