import type { FastifyInstance } from 'fastify';
import type { ReadDependencies } from '../read-route.ts';
import { registerActivities } from './activity-route.ts';
import { registerExport } from './export-route.ts';
import { registerFunnel } from './funnel-route.ts';
import { registerMenus } from './menus-route.ts';
import { registerRetention } from './retention-route.ts';
import { registerSeries } from './series-route.ts';

/** Registers the reads that dashboards draw from. */
export function registerReports(app: FastifyInstance, deps: ReadDependencies): void {
  registerSeries(app, deps);
  registerFunnel(app, deps);
  registerRetention(app, deps);
  registerExport(app, deps);
  registerMenus(app, deps);
  registerActivities(app, deps);
}
