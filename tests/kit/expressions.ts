import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { withProcessMetrics } from '@sluice/shared/service/process-metrics';
import { Registry } from 'prom-client';
import { listMetrics } from './metrics/metric-list.ts';
import { readRules } from './scaled-rules.ts';

/** The labels that Prometheus gives every series; `namespace` in Kubernetes only. */
const OF_TARGETS: readonly string[] = ['job', 'instance', 'namespace'];

/** With a file of servers, all series of a writer have the name of its server. */
const OF_WRITERS: readonly string[] = ['server'];

const KEYWORDS: readonly string[] = ['or', 'and', 'unless', 'offset', 'bool'];

const RULES = readRules(
  readFileSync(join(import.meta.dirname, '..', '..', 'deploy', 'prometheus', 'sluice.rules.yml'), 'utf8'),
);

/** The series that the services have, and those that Prometheus records of them, with their labels. */
const SERIES = new Map<string, readonly string[]>([
  ['up', []],
  ...withProcessMetrics(new Registry())
    .getMetricsAsArray()
    .map(({ name }): [string, string[]] => [name, []]),
  ...listMetrics().flatMap(({ name, type, labels: own, services }): [string, readonly string[]][] => {
    const labels = services.includes('writer') ? [...own, ...OF_WRITERS] : own;
    return type === 'histogram'
      ? [
          [`${name}_bucket`, [...labels, 'le']],
          [`${name}_sum`, labels],
          [`${name}_count`, labels],
        ]
      : [[name, labels]];
  }),
  ...RULES.flatMap((rule): [string, readonly string[]][] => ('record' in rule ? [[rule.record, ['slo']]] : [])),
]);

const OF_SERVERS = listMetrics().filter(({ isOfServers }) => isOfServers);

/** Whether an expression has metrics that exist only with a file of ClickHouse servers. */
export function isOfServers(expression: string): boolean {
  return OF_SERVERS.some(({ name }) => expression.includes(name));
}

/**
 * Returns what is wrong with an expression of PromQL: metrics that no service declares, and labels that none of its metrics
 * has.
 *
 * @param template text with more labels of the result, such as `{{topic}}` or `{{ $labels.topic }}`
 */
export function errorsOf(expression: string, template = ''): string[] {
  const code = expression.replaceAll(/"[^"]*"/g, '""').replaceAll(/\[[^\]]*\]/g, '');
  const lists = [...code.matchAll(/\{([^}]*)\}|\b(?:by|on) \(([^)]*)\)/g)];
  const labels = lists.flatMap(([, matchers, names]) =>
    matchers === undefined
      ? (names ?? '').split(', ')
      : [...matchers.matchAll(/(\w+)[=!]/g)].map(([, label = '']) => label),
  );
  const shown = [...template.matchAll(/\{\{(?:[^}]*\$labels\.)?(\w+) ?\}\}/g)].map(([, label = '']) => label);
  const bare = code.replaceAll(/\{[^}]*\}|\b(?:by|on) \([^)]*\)/g, '');
  // What stands before a bracket is a function or an aggregation.
  const names = [...bare.matchAll(/\b[a-z_][\w:]*\b(?!\s*\()/g)].map(([name]) => name);
  const metrics = names.filter((name) => !KEYWORDS.includes(name));
  const known = [...OF_TARGETS, ...metrics.flatMap((name) => SERIES.get(name) ?? [])];
  return [
    ...(metrics.length === 0 ? [`no metric: ${expression}`] : []),
    ...metrics.filter((name) => !SERIES.has(name)).map((name) => `unknown metric ${name}`),
    ...[...labels, ...shown].filter((label) => !known.includes(label)).map((label) => `unknown label ${label}`),
  ];
}
