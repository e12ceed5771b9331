import { isDeepStrictEqual } from 'node:util';
import { parse } from 'yaml';
import type { KubernetesObject } from './kubernetes-object.ts';

/** A rule that records a series, or an alert. */
interface Rule {
  readonly alert?: string;
  readonly annotations?: Readonly<Record<string, string>>;
}

interface Rules {
  readonly groups: readonly { readonly name: string; readonly rules: readonly Rule[] }[];
}

/** Values of `metrics.prometheusRule`. */
export const PASSED_RULES = {
  enabled: true,
  labels: { release: 'passed' },
  runbookBaseUrl: 'https://git.example.com/passed/',
  leaveOut: ['SluiceBackupOld', 'SluiceDeadLetters'],
} as const;

/**
 * Returns what the object with the rules has otherwise than {@link PASSED_RULES} say.
 *
 * @param file the text of the rules
 */
export function passedRuleErrors(objects: readonly KubernetesObject[], file: string): readonly string[] {
  const found = objects.find(({ kind }) => kind === 'PrometheusRule');
  if (!found) return ['PrometheusRule is missing'];
  const { groups } = found['spec'] as Rules;
  const wanted = (parse(file) as Rules).groups.map(({ name, rules }) => ({
    name,
    rules: rules
      .filter(({ alert = '' }) => !PASSED_RULES.leaveOut.some((name) => name === alert))
      .map(({ annotations, ...rule }) => ({ ...rule, ...(annotations && { annotations: withAddress(annotations) }) })),
  }));
  return [
    ...(found.metadata.labels['release'] === 'passed' ? [] : ['PrometheusRule: its label is missing']),
    ...wanted.flatMap(({ name, rules }) => {
      const rendered = groups.find((group) => group.name === name)?.rules ?? [];
      const differing = rules.findIndex((rule, index) => !isDeepStrictEqual(rule, rendered[index]));
      if (differing < 0) return rendered.length === rules.length ? [] : [`PrometheusRule: ${name} has too many rules`];
      return [`PrometheusRule: it has ${JSON.stringify(rendered[differing])}, not ${JSON.stringify(rules[differing])}`];
    }),
  ];
}

function withAddress(annotations: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return { ...annotations, runbook_url: `${PASSED_RULES.runbookBaseUrl}${annotations['runbook_url']}` };
}
