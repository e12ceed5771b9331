import type { FastifyInstance } from 'fastify';
import { type ReadDependencies, registerQueryRead } from '../read-route.ts';
import { registerActivities } from './activity/activity.ts';
import { registerExport } from './export/export.ts';
import { funnelRead } from './funnel/funnel.ts';
import { registerMenus, valuesRead } from './menus/menus.ts';
import { retentionRead } from './retention/retention.ts';
import { seriesRead } from './series/series.ts';

/** Registers the reads that dashboards draw from. */
export function registerReports(app: FastifyInstance, deps: ReadDependencies): void {
  registerQueryRead(app, seriesRead(deps));
  registerQueryRead(app, funnelRead(deps));
  registerQueryRead(app, retentionRead(deps));
  registerExport(app, deps);
  registerMenus(app, deps);
  registerQueryRead(app, valuesRead(deps));
  registerActivities(app, deps);
}
