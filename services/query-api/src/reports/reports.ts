import type { FastifyInstance } from 'fastify';
import { type ReadDependencies, registerQueryRead } from '../store/read-route.ts';
import { registerActivities } from './activity/activity.ts';
import { registerExport } from './export/export.ts';
import { funnelRead, registerFunnelPeople } from './funnel/funnel.ts';
import { registerMenus, valuesRead } from './menus/menus.ts';
import { registerRetentionPeople, retentionRead } from './retention/retention.ts';
import { seriesRead } from './series/series.ts';

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
  registerExport(app, deps);
}
