import type { FastifyInstance } from 'fastify';
import type { ReadDependencies } from '../read-route.ts';
import { registerActivities } from './activity/activity.ts';
import { registerExport } from './export/export.ts';
import { registerFunnel } from './funnel/funnel.ts';
import { registerMenus } from './menus/menus.ts';
import { registerRetention } from './retention/retention.ts';
import { registerSeries } from './series/series.ts';

/** Registers the reads that dashboards draw from. */
export function registerReports(app: FastifyInstance, deps: ReadDependencies): void {
  registerSeries(app, deps);
  registerFunnel(app, deps);
  registerRetention(app, deps);
  registerExport(app, deps);
  registerMenus(app, deps);
  registerActivities(app, deps);
}
