import { readFile } from 'node:fs/promises';
import { until } from '@sluice/shared/testing/until';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { dashboardFiles } from '../../scripts/dashboards/files.ts';
import { ALERTS_OF_ONE_SERVER, type AlertFault, AlertFaults, RULES } from '../kit/alert-faults.ts';
import { expectAlerts, isOfABusyMachine } from '../kit/expect-alerts.ts';
import { isOfServers } from '../kit/expressions.ts';
import { startLoad } from '../kit/load.ts';
import { type Prometheus, startPrometheus } from '../kit/prometheus.ts';

/** Every time of the rules is divided by it: five minutes are 20 seconds. */
const FACTOR = 15;
const SCRAPE_INTERVAL_SECONDS = 2;
/** Evaluations of a healthy system: a minute, or a quarter of an hour of the rules' time. */
const HEALTHY_EVALUATIONS = 60;

const started = new AsyncDisposableStack();
const startedAt = new Date();
const faults = new Map<string, { readonly what: string; readonly at: Date }>();
let system: AlertFaults;
let prometheus: Prometheus;

beforeAll(async () => {
  system = started.use(await AlertFaults.start('alerts'));
  const { targets } = system;
  prometheus = started.use(await startPrometheus({ factor: FACTOR, scrapeInterval: SCRAPE_INTERVAL_SECONDS, targets }));
  await until('the first scrapes', async () => {
    const [up, alerts] = await Promise.all([prometheus.query('up == 1'), prometheus.query('ALERTS')]);
    return up.length === targets.length && alerts.length === 0;
  });
});
afterAll(() => started.disposeAsync());

test('over a healthy load no alert fires', async () => {
  const since = new Date();
  const before = await prometheus.evaluations();
  await system.useEverything();
  {
    await using _load = startUsual(4);
    await using _reading = system.readAllTheTime();
    await until('Prometheus to have evaluated the rules', async () => {
      return (await prometheus.evaluations()) >= before + HEALTHY_EVALUATIONS;
    });
  }
  const seen = await alertsSince(since);
  const inState = (wanted: string) => seen.flatMap(({ alert, state }) => (state === wanted ? [alert] : []));
  expectAlerts(inState('firing'), []);
  expectAlerts(
    inState('pending').filter((alert) => !isOfABusyMachine(alert)),
    [],
  );
});

test('a webhook whose receiver fails lags, one whose receiver is gone is paused, and an alert whose view is gone fails', async () => {
  for (const fault of [...system.ofWebhooks(), system.ofAnAlert()]) {
    await cause(fault);
    await firing(...fault.alerts);
  }
  await system.deleteWebhook();
  await until('the alerts to end', async () =>
    (await alertsSince(new Date())).every(({ alert }) => !/^Sluice(Webhook|Alerts)/.test(alert)),
  );
});

test('each fault of a process, of a clock, of rows, of ClickHouse and of what was forgotten fires its alert', async () => {
  const faultsAt = new Date();
  await using _load = startUsual(2);
  for (const fault of system.ofEverythingElse()) await cause(fault);
  await prometheus.setTargets(system.targets);
  await firing('SluiceDeadLetters');
  await cause(system.ofTheDisk());
  const caused = [...faults].filter(([, { at }]) => at >= faultsAt).map(([alert]) => alert);
  await firing(...caused);
  const fired = (await alertsSince(faultsAt)).filter(({ state }) => state === 'firing').map(({ alert }) => alert);
  expectAlerts(fired, caused);
  await system.repair();
  await prometheus.setTargets(system.targets);
});

test('while Kafka is down, after it deleted rows that were not stored, and after it lost them, the alerts fire', async () => {
  {
    await using _load = startUsual(4);
    const down = system.ofKafkaDown();
    await cause(down);
    await firing(...down.alerts);
  }
  await system.restartKafka();
  for (const fault of system.ofKafkasLosses()) {
    await cause(fault);
    await firing(...fault.alerts);
  }
});

test('every alert had its fault', async () => {
  const rows = [];
  for (const [alert, { what, at }] of faults) {
    const first = (await alertsSince(at)).find((found) => found.alert === alert && found.state === 'firing');
    const seconds = Math.round((first?.at ?? Number.NaN) - at.getTime() / 1_000);
    const [rule] = RULES.filter((found) => found.alert === alert && found.labels['severity'] === first?.severity);
    rows.push({
      alert,
      severity: first?.severity,
      fault: what,
      'fired after s': seconds,
      [`for, before it was divided by ${FACTOR}`]: rule?.for,
    });
  }
  console.table(rows);
  expect([...faults.keys()].sort()).toEqual(ALERTS_OF_ONE_SERVER);
});

test.each(dashboardFiles())('every query of $dashboard.title returns data', async ({ path }) => {
  const dashboard = JSON.parse(await readFile(path, 'utf8')) as DashboardJson;
  const targets = dashboard.panels
    .flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ title, expr })))
    .filter(({ expr }) => !isOfServers(expr));
  expect(targets.length).toBeGreaterThan(5);
  const empty: string[] = [];
  for (const { title, expr } of targets) {
    const query = expr.replaceAll('$__rate_interval', `${4 * SCRAPE_INTERVAL_SECONDS}s`);
    const found = await prometheus.queryRange(query, startedAt, SCRAPE_INTERVAL_SECONDS);
    if (!found.some(({ values }) => values.some(([, value]) => value !== 'NaN'))) empty.push(`${title}: ${expr}`);
  }
  expect(empty).toEqual([]);
});

interface DashboardJson {
  readonly panels: readonly { readonly title: string; readonly targets?: readonly { readonly expr: string }[] }[];
}

function startUsual(concurrency: number) {
  const { running } = system;
  return startLoad({ pipeline: running, urls: () => [running.services['ingest-api'].url], concurrency });
}

/** Causes a fault. */
async function cause({ alerts, what, cause }: AlertFault): Promise<void> {
  for (const alert of alerts) faults.set(alert, { what, at: new Date() });
  await cause();
}

/** Waits until these alerts have fired since their faults. */
async function firing(...alerts: readonly string[]): Promise<void> {
  for (const alert of alerts) {
    const since = faults.get(alert)?.at ?? startedAt;
    await until(`${alert} to fire`, async () =>
      (await alertsSince(since)).some((found) => found.alert === alert && found.state === 'firing'),
    );
  }
}

interface SeenAlert {
  readonly alert: string;
  readonly severity: string;
  readonly state: string;
  /** When it was seen first, in seconds since 1970. */
  readonly at: number;
  /** What else identifies it, for messages. */
  readonly labels: string;
}

/** The alerts that have been pending or firing since then. */
async function alertsSince(since: Date): Promise<SeenAlert[]> {
  const found = await prometheus.queryRange('ALERTS', since, 1);
  return found
    .map(({ metric, values }) => {
      const { __name__, alertname = '', alertstate = '', severity = '', ...labels } = metric;
      const at = values[0]?.[0] ?? 0;
      return { alert: alertname, severity, state: alertstate, at, labels: JSON.stringify(labels) };
    })
    .sort((a, b) => a.at - b.at);
}
