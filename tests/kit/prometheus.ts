import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startEngineProcess } from '@sluice/local-stack/engine-process';
import { findFreePorts } from '@sluice/local-stack/ports';
import { guardCommand } from '@sluice/local-stack/process-guard';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { parse, stringify } from 'yaml';
import { findPrometheus } from './prometheus-programs.ts';
import { scaleDuration, scaleRules } from './scaled-rules.ts';

export interface PrometheusOptions {
  /** All times of the rules are divided by it. */
  readonly factor: number;
  /** In seconds. */
  readonly scrapeInterval: number;
  readonly targets: readonly ScrapeTarget[];
}

export interface ScrapeTarget {
  /** `http://127.0.0.1:<port>` */
  readonly url: string;
  readonly job: string;
}

/** A series, with its values in the order of time. */
export interface Series {
  readonly metric: Readonly<Record<string, string>>;
  readonly values: readonly (readonly [seconds: number, value: string])[];
}

/** A Prometheus that scrapes services and evaluates `deploy/prometheus/sluice.rules.yml`. */
export interface Prometheus extends AsyncDisposable {
  /** It scrapes these from now on. */
  setTargets(targets: readonly ScrapeTarget[]): Promise<void>;
  /** Evaluates an expression now. @throws {Error} with what is wrong with it */
  query(expr: string): Promise<readonly Series[]>;
  /** Evaluates an expression at every `step` seconds since then. @throws {Error} with what is wrong with it */
  queryRange(expr: string, since: Date, step: number): Promise<readonly Series[]>;
  /** How often it has evaluated the rules. */
  evaluations(): Promise<number>;
}

const PROMETHEUS_FOLDER = join(import.meta.dirname, '..', '..', 'deploy', 'prometheus');
const RULES_FILE = 'sluice.rules.yml';
const READY_TIMEOUT_MS = 60_000;
const STOP_TIMEOUT_MS = 10_000;

/** The configuration of `deploy/prometheus`, with shorter intervals, in a folder of its own. */
export async function startPrometheus({ factor, scrapeInterval, targets }: PrometheusOptions): Promise<Prometheus> {
  const { prometheus } = await findPrometheus();
  await using cleanup = new AsyncDisposableStack();
  const { path: folder } = cleanup.use(await makeTempDir());
  const ownFile = (name: string) => readFile(join(PROMETHEUS_FOLDER, name), 'utf8');
  const config = parse(await ownFile('prometheus.yml'));
  config.global = {
    scrape_interval: `${scrapeInterval}s`,
    scrape_timeout: `${scrapeInterval}s`,
    evaluation_interval: scaleDuration('15s', factor),
  };
  const setTargets = async (wanted: readonly ScrapeTarget[]) => {
    const groups = wanted.map(({ url, job }) => ({ targets: [new URL(url).host], labels: { job } }));
    await writeFile(join(folder, 'targets.yml'), stringify(groups));
  };
  await setTargets(targets);
  await writeFile(join(folder, 'prometheus.yml'), stringify(config));
  await writeFile(join(folder, RULES_FILE), scaleRules(await ownFile(RULES_FILE), factor));

  const [port = 0] = await findFreePorts(1);
  const url = `http://127.0.0.1:${port}`;
  const server = await startEngineProcess({
    name: 'Prometheus',
    ...guardCommand(prometheus, [
      `--config.file=${join(folder, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
    ]),
    cwd: folder,
    logFile: join(folder, 'prometheus.log'),
    probe: async (signal) => {
      if (!(await fetch(`${url}/-/ready`, { signal })).ok) throw new Error('not ready');
    },
    readyTimeoutMs: READY_TIMEOUT_MS,
    stopTimeoutMs: STOP_TIMEOUT_MS,
  });
  cleanup.defer(() => server.kill9());

  async function request(path: string, parameters: Readonly<Record<string, string>>): Promise<readonly Series[]> {
    const response = await fetch(`${url}/api/v1/${path}?${new URLSearchParams(parameters)}`);
    const { status, error, data } = (await response.json()) as QueryResponse;
    if (status !== 'success') throw new Error(`${error}: ${parameters['query']}`);
    return data.result.map(({ metric, value, values }) => ({ metric, values: values ?? (value ? [value] : []) }));
  }

  const kept = cleanup.move();
  return {
    setTargets,
    query: (expr) => request('query', { query: expr }),
    queryRange: (expr, since, step) =>
      request('query_range', {
        ...{ query: expr, start: since.toISOString(), end: new Date().toISOString() },
        step: String(step),
      }),
    async evaluations() {
      const text = await (await fetch(`${url}/metrics`)).text();
      return Number(/^prometheus_rule_group_iterations_total\{.*\} (\S+)$/m.exec(text)?.[1] ?? 0);
    },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

interface QueryResponse {
  readonly status: string;
  readonly error?: string;
  readonly data: {
    readonly result: readonly (Pick<Series, 'metric'> &
      Partial<Pick<Series, 'values'>> & { readonly value?: Series['values'][number] })[];
  };
}
