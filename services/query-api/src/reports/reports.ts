import type { FastifyInstance } from 'fastify';
import { type ReadDependencies, registerQueryRead } from '../store/store.ts';
import { registerActivities } from './activity/activity.ts';
import { registerExport } from './export/export.ts';
import { funnelRead, registerFunnelPeople } from './funnel/funnel.ts';
import { registerMenus, valuesRead } from './menus/menus.ts';
import { overviewRead } from './overview/overview.ts';
import { registerRetentionPeople, retentionRead } from './retention/retention.ts';
import { seriesRead } from './series/series.ts';

export { timeZoneParameter } from './calendar.ts';
export { funnelRead, funnelSchema } from './funnel/funnel.ts';
export { valuesRead, valuesSchema } from './menus/menus.ts';
export { reportRows } from './report-runner.ts';
export { reportBuckets } from './report-selection.ts';
export { retentionRead, retentionSchema } from './retention/retention.ts';
export { seriesRead, seriesSchema } from './series/series.ts';
export { type SeriesNumber, seriesNumber } from './series/series-number.ts';

/** Registers the reads that dashboards draw from. */
export function registerReports(app: FastifyInstance, deps: ReadDependencies): void {
  registerQueryRead(app, seriesRead(deps));
  registerQueryRead(app, funnelRead(deps));
  registerFunnelPeople(app, deps);
  registerQueryRead(app, retentionRead(deps));
  registerRetentionPeople(app, deps);
  registerMenus(app, deps);
  registerQueryRead(app, valuesRead(deps));
  registerActivities(app, deps);
  registerQueryRead(app, overviewRead(deps));
  registerExport(app, deps);
}
