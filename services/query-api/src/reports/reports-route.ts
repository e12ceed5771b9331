import type { FastifyInstance } from 'fastify';
import type { QueryRunner } from '../clickhouse/query-runner.ts';
import type { QueryConfig } from '../config.ts';
import { registerActivities } from './activity-route.ts';
import { registerExport } from './export-route.ts';
import { registerFunnel } from './funnel-route.ts';
import { registerMenus } from './menus-route.ts';
import { registerRetention } from './retention-route.ts';
import { registerSeries } from './series-route.ts';

/** What the routes of reports need. */
export interface ReportDependencies {
  readonly config: QueryConfig;
  readonly queryRunner: QueryRunner;
}

/** Registers the reads that dashboards draw from. */
export function registerReports(app: FastifyInstance, deps: ReportDependencies): void {
  registerSeries(app, deps);
  registerFunnel(app, deps);
  registerRetention(app, deps);
  registerExport(app, deps);
  registerMenus(app, deps);
  registerActivities(app, deps);
}
