import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { readSettings } from '../../scripts/start/settings.ts';
import { errorsOf } from '../kit/expressions.ts';
import { readAlertRules, readRules } from '../kit/scaled-rules.ts';

const ROOT = new URL('../../', import.meta.url);
const read = (path: string) => readFile(new URL(path, ROOT), 'utf8');

const text = await read('deploy/prometheus/sluice.rules.yml');
const rules = readAlertRules(text);
const names = [...new Set(rules.map(({ alert }) => alert))];

test('every alert has a severity, texts, and a runbook; the document has no other runbooks', async () => {
  for (const { alert, labels, annotations } of rules) {
    expect(['warning', 'critical'], alert).toContain(labels['severity']);
    expect(annotations, alert).toEqual({
      summary: expect.stringMatching(/\S/),
      description: expect.stringMatching(/\.(\{\{ end \}\})?$/),
      runbook_url: `docs/operate/alerts.md#${alert.toLowerCase()}`,
    });
  }
  const headings = [...(await read('docs/operate/alerts.md')).matchAll(/^## (Sluice\w+)$/gm)].map(([, name]) => name);
  expect(headings).toEqual(names);
});

test('rules use metrics and labels that the services have', () => {
  const errors = readRules(text).flatMap((rule) =>
    'alert' in rule
      ? errorsOf(rule.expr, rule.annotations['description']).map((error) => `${rule.alert}: ${error}`)
      : errorsOf(rule.expr).map((error) => `${rule.record}: ${error}`),
  );
  expect(errors).toEqual([]);
  expect(errorsOf('max by (topic, table) (sluice_nothing{colour="red"}) > 1', '{{ $labels.code }}')).toEqual([
    'unknown metric sluice_nothing',
    ...['topic', 'table', 'colour', 'code'].map((label) => `unknown label ${label}`),
  ]);
});

test('Prometheus scrapes the services where npm start and the compose file have them', async () => {
  const { ports } = readSettings({}, '.').settings;
  const targetsOf = async (path: string) =>
    (parse(await read(path)) as { targets: [string]; labels: { job: string } }[]).map(({ targets, labels }) => [
      labels.job,
      ...targets,
    ]);
  expect(await targetsOf('deploy/prometheus/targets.yml')).toEqual([
    ['sluice-ingest-api', `127.0.0.1:${ports.ingest}`],
    ['sluice-writer', `127.0.0.1:${ports.writer}`],
    ['sluice-query-api', `127.0.0.1:${ports.query}`],
  ]);
  const { services } = parse(await read('docker-compose.yml'), { merge: true });
  for (const [job = '', target = ''] of await targetsOf('deploy/prometheus/targets.compose.yml')) {
    const name = job.replace('sluice-', '');
    expect(target).toBe(`${name}:${services[name].environment.PORT}`);
  }
});
