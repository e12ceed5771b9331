import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { dashboardFiles } from '../../scripts/dashboards/files.ts';
import { errorsOf } from '../kit/expressions.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const read = (path: string) => readFile(join(ROOT, path), 'utf8');

test.each(dashboardFiles())('$path is what npm run dashboards writes', async ({ path, text }) => {
  expect(await readFile(path, 'utf8')).toBe(text);
});

test.each(dashboardFiles())('$dashboard.title uses metrics and labels that the services have', ({ dashboard }) => {
  const errors = (dashboard.panels ?? []).flatMap((panel) =>
    ('targets' in panel ? (panel.targets ?? []) : []).flatMap((target) => {
      const { expr, legendFormat } = target as { readonly expr?: string; readonly legendFormat?: string };
      return errorsOf(expr ?? '', legendFormat).map((error) => `${panel.title}: ${error}`);
    }),
  );
  expect(errors).toEqual([]);
});

test('the Grafana of the compose file has the dashboards and its Prometheus', async () => {
  const { services } = parse(await read('docker-compose.yml'), { merge: true });
  const { environment, volumes } = services.grafana;
  const [[folder = '', mounted = ''] = []] = volumes.map((volume: string) => volume.split(':'));
  const outside = (path: string) => path.replace(mounted, folder);
  const provisioning = outside(environment.GF_PATHS_PROVISIONING);
  const provider = parse(await read(join(provisioning, 'dashboards', 'sluice.yml'))).providers[0];
  for (const { path } of dashboardFiles()) {
    expect(existsSync(join(ROOT, outside(provider.options.path), basename(path)))).toBe(true);
  }
  const [source] = parse(await read(join(provisioning, 'datasources', 'prometheus.yml'))).datasources;
  const { hostname, port } = new URL(source.url);
  expect(services[hostname].ports).toEqual([`127.0.0.1:${port}:${port}`]);
  const { global } = parse(await read('deploy/prometheus/prometheus.yml'));
  expect(source.jsonData.timeInterval).toBe(global.scrape_interval);
});
