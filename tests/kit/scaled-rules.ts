import { parse, stringify } from 'yaml';

/** A rule of `deploy/prometheus/sluice.rules.yml`. */
export type Rule = AlertRule | RecordingRule;

export interface AlertRule {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

export interface RecordingRule {
  /** The name of the series. */
  readonly record: string;
  readonly expr: string;
  readonly labels?: Readonly<Record<string, string>>;
}

const MS_PER_UNIT = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** A duration of PromQL, beside a range (`[5m]`, `[2h:1m]`) or an offset. */
const DURATION = /(?<=\[|\[\w+:|offset )\d+(?:ms|[smhd])\b/g;

/** A time in seconds, as the rules write it. */
const PRODUCT = /\b\d+ \* (?:60|3600)\b/g;

/** Returns the rules of a file. */
export function readRules(text: string): readonly Rule[] {
  const { groups } = parse(text) as { groups: readonly { rules: readonly Rule[] }[] };
  return groups.flatMap(({ rules }) => rules);
}

/** Returns those that fire. */
export function readAlertRules(text: string): readonly AlertRule[] {
  return readRules(text).filter((rule) => 'alert' in rule);
}

/** Returns a file of rules with every time divided by a factor: how long, over what range, and against what limit. */
export function scaleRules(text: string, factor: number): string {
  const rules = readRules(text).map((rule) => ({
    ...rule,
    ...('for' in rule && rule.for !== undefined && { for: scaleDuration(rule.for, factor) }),
    expr: rule.expr
      .replaceAll(DURATION, (duration) => scaleDuration(duration, factor))
      .replaceAll(PRODUCT, (product) => `(${product} / ${factor})`),
  }));
  return stringify({ groups: [{ name: 'sluice', rules }] });
}

/** Divides a duration of Prometheus, such as `15m`. */
export function scaleDuration(duration: string, factor: number): string {
  return `${Math.round(durationMs(duration) / factor)}ms`;
}

/** Returns a duration of Prometheus in milliseconds. */
export function durationMs(duration: string): number {
  const [, count, unit] = /^(\d+)(ms|[smhd])$/.exec(duration) ?? [];
  if (unit === undefined) throw new Error(`${duration} is not a duration`);
  return Number(count) * MS_PER_UNIT[unit as keyof typeof MS_PER_UNIT];
}
