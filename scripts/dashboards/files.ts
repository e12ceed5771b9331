import { join } from 'node:path';
import type { Dashboard } from '@grafana/grafana-foundation-sdk/dashboard';
import { clickhouse } from './clickhouse.ts';
import { buildDashboard } from './dashboard.ts';
import { objectives } from './objectives.ts';
import { pipeline } from './pipeline.ts';
import { services } from './services.ts';

/** The file of a dashboard, and what belongs into it. */
export interface DashboardFile {
  readonly path: string;
  readonly dashboard: Dashboard;
  readonly text: string;
}

const FOLDER = join(import.meta.dirname, '..', '..', 'deploy', 'grafana');

/** Builds all dashboards. */
export function dashboardFiles(): readonly DashboardFile[] {
  return [services, pipeline, clickhouse, objectives].map((description) => {
    const dashboard = buildDashboard(description);
    const text = `${JSON.stringify(dashboard, null, 2)}\n`;
    return { path: join(FOLDER, `${description.name}.json`), dashboard, text };
  });
}
