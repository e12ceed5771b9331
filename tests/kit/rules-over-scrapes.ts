import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { stringify } from 'yaml';
import type { ScrapeTarget } from './prometheus.ts';
import { findPrometheus } from './prometheus-programs.ts';
import { readRules, scaleRules } from './scaled-rules.ts';

/** What targets expose at one time: the value of each series, by its name and labels. */
export interface Scrape {
  readonly values: ReadonlyMap<string, number>;
  /** Names of series that only grow. */
  readonly counters: ReadonlySet<string>;
}

const RULES_FILE = join(import.meta.dirname, '..', '..', 'deploy', 'prometheus', 'sluice.rules.yml');

/** How long a target may take, in milliseconds. One that is frozen never answers. */
const SCRAPE_TIMEOUT_MS = 3_000;

/** The evaluations before the change, and those in which it happens: twenty minutes, and an hour of the rules' time. */
const EVALUATIONS = { before: 40, after: 120 } as const;
/** Twice as long as Prometheus waits by default: an evaluation over an hour takes half of the time, and no rule looks at less than two minutes. */
const EVALUATION_MS = 30_000;

/** Reads `/metrics` of each target once, as Prometheus does. */
export async function scrape(targets: readonly ScrapeTarget[]): Promise<Scrape> {
  const values = new Map<string, number>();
  const counters = new Set<string>();
  await Promise.all(
    targets.map(async ({ url, job }) => {
      const labels = `job="${job}",instance="${new URL(url).host}"`;
      const signal = AbortSignal.timeout(SCRAPE_TIMEOUT_MS);
      const text = await fetch(`${url}/metrics`, { signal }).then(
        (response) => response.text(),
        () => undefined,
      );
      values.set(`up{${labels}}`, text === undefined ? 0 : 1);
      for (const line of (text ?? '').split('\n')) {
        const [, counter, kind] = /^# TYPE (\w+) (counter|histogram)$/.exec(line) ?? [];
        if (counter)
          for (const suffix of kind === 'counter' ? [''] : ['_bucket', '_sum', '_count'])
            counters.add(counter + suffix);
        const [, name, own = '', value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
        if (name) values.set(`${name}{${own && `${own},`}${labels}}`, Number(value));
      }
    }),
  );
  return { values, counters };
}

export interface RulesOptions {
  /** What was there for twenty minutes of the rules' time. */
  readonly before: Scrape;
  /** What is there an hour later: counters have grown evenly since, everything else has been so all the time. */
  readonly after: Scrape;
  /** All times of the rules are divided by it. Default 1. */
  readonly factor?: number;
  /** What of an alert is returned. */
  readonly states: readonly ('pending' | 'firing')[];
}

/** Returns the alerts of `deploy/prometheus/sluice.rules.yml` at the end of the hour, sorted, as Prometheus evaluates them. */
export async function alertsOver({ before, after, factor = 1, states }: RulesOptions): Promise<readonly string[]> {
  await using folder = await makeTempDir();
  const rules = await readFile(RULES_FILE, 'utf8');
  await writeFile(join(folder.path, 'rules.yml'), scaleRules(rules, factor));
  const interval = `${EVALUATION_MS / factor}ms`;
  const endMs = ((EVALUATIONS.before + EVALUATIONS.after) * EVALUATION_MS) / factor;
  const endSeconds = endMs / 1_000;
  const test = {
    interval,
    input_series: seriesOf(inTimeOfRules(before, endSeconds), inTimeOfRules(after, endSeconds), rules),
    promql_expr_test: [
      {
        expr: `group by (alertname) (ALERTS{alertstate=~"${states.join('|')}"})`,
        eval_time: `${endMs}ms`,
        exp_samples: [],
      },
    ],
  };
  const file = join(folder.path, 'tests.yml');
  await writeFile(file, stringify({ rule_files: ['rules.yml'], evaluation_interval: interval, tests: [test] }));
  const { promtool } = await findPrometheus();
  const output = await promisify(execFile)(promtool, ['test', 'rules', file]).then(
    () => '',
    ({ stdout, stderr }: { stdout: string; stderr: string }) => `${stdout}${stderr}`,
  );
  // What it finds is not what it was told to expect: nothing.
  const [, got] = /^\s*got:\s*(.*)$/m.exec(output) ?? [];
  if (output !== '' && got === undefined) throw new Error(output);
  return [...(got ?? '').matchAll(/alertname="(\w+)"/g)].map(([, name = '']) => name).sort();
}

/** Returns what was exposed with times in which now is the end of the rules' time: that begins with 1970. */
function inTimeOfRules({ values, counters }: Scrape, endSeconds: number): Scrape {
  const behind = Date.now() / 1_000 - endSeconds;
  const moved = [...values].map(
    ([series, value]) => [series, /^\w+_timestamp_seconds\b/.test(series) ? value - behind : value] as const,
  );
  return { values: new Map(moved), counters };
}

/** The series that the rules mention, in promtool's notation. */
function seriesOf(before: Scrape, after: Scrape, rules: string) {
  const mentioned = new Set(readRules(rules).flatMap(({ expr }) => expr.match(/\b[a-z_]\w*\b/g) ?? []));
  const names = [...new Set([...before.values.keys(), ...after.values.keys()])];
  return names.flatMap((series) => {
    const [name = ''] = series.split('{');
    if (!mentioned.has(name)) return [];
    const [first, last] = [before.values.get(series), after.values.get(series)];
    const earlier = first === undefined ? `_x${EVALUATIONS.before}` : `${first}x${EVALUATIONS.before - 1}`;
    const isCounter = after.counters.has(name);
    // A counter that has lost its past began anew.
    const from = isCounter ? (first !== undefined && last !== undefined && first <= last ? first : 0) : last;
    const later =
      last === undefined || from === undefined
        ? `_x${EVALUATIONS.after}`
        : `${from}+${(last - from) / EVALUATIONS.after}x${EVALUATIONS.after}`;
    return [{ series, values: `${earlier} ${later}` }];
  });
}
