import { setTimeout as delay } from 'node:timers/promises';
import { explain, until } from '@sluice/shared/testing/until';
import { afterAll, beforeAll, test } from 'vitest';
import { AlertFaults } from '../kit/alert-faults.ts';
import { expectAlerts, isOfABusyMachine, isSymptom } from '../kit/expect-alerts.ts';
import { type Load, startLoad } from '../kit/load.ts';
import { alertsOver, type Scrape, scrape } from '../kit/rules-over-scrapes.ts';

// What is scraped before and after each fault is given to promtool, which evaluates the rules as if an hour lay between
// them. At night a Prometheus scrapes and evaluates all the time, and every alert has its fault: tests/night/alerts.test.ts.

/** Every time of the rules is divided by it, so that a lag of ten minutes is one of ten seconds. */
const FACTOR = 60;

let system: AlertFaults;
/** While nothing fails. */
let healthy: Scrape;

beforeAll(async () => {
  system = await AlertFaults.start('ruled');
});
afterAll(() => system?.[Symbol.asyncDispose]());

function startUsual(concurrency: number): Load {
  const { running } = system;
  return startLoad({ pipeline: running, urls: () => [running.services['ingest-api'].url], concurrency });
}

/** Waits until a load has had so many more events accepted. */
async function untilAccepted(load: Load, events: number): Promise<void> {
  const before = load.acceptedSoFar();
  await until('more events to be accepted', async () => load.acceptedSoFar() > before + events);
}

/** Waits until every process answers a scrape: a busy machine may keep one of them from it. */
async function scrapeOfAll(): Promise<Scrape> {
  return await until('every process to answer', async () => {
    const found = await scrape(system.targets);
    const isWhole = [...found.values].every(([series, value]) => !series.startsWith('up{') || value === 1);
    return isWhole ? found : undefined;
  });
}

/** Waits until these alerts fire, and none that a busy machine causes besides, and returns all that fire then. */
async function untilFiring(alerts: readonly string[]): Promise<readonly string[]> {
  let firing: readonly string[] = [];
  await until(`${alerts.join(', ')} to fire`, async () => {
    // An evaluation takes half a second of a core.
    await delay(3_000);
    firing = await alertsOver({
      before: healthy,
      after: await scrape(system.targets),
      factor: FACTOR,
      states: ['firing'],
    });
    const others = firing.filter((alert) => !alerts.includes(alert) && !isSymptom(alert));
    return alerts.every((alert) => firing.includes(alert)) && !others.some(isOfABusyMachine);
  }).catch(explain(() => `What fires is ${firing.join(', ')}`));
  return firing;
}

test('over a healthy load no alert fires, or is pending', async () => {
  await system.useEverything();
  await using load = startUsual(4);
  await using _reading = system.readAllTheTime();
  await untilAccepted(load, 50);
  healthy = await scrapeOfAll();
  await untilAccepted(load, 100);
  const after = await scrapeOfAll();
  const seen = await alertsOver({ before: healthy, after, states: ['pending', 'firing'] });
  expectAlerts(seen, []);
});

test('each fault of a process, of a clock, of rows, of ClickHouse and of what was forgotten fires its alert', async () => {
  await using load = startUsual(2);
  await untilAccepted(load, 20);
  const faults = system.ofEverythingElse();
  for (const { alerts, cause } of faults) {
    await cause();
    // What Kafka keeps is read once a minute, and at a start.
    if (alerts.includes('SluiceRetentionNear')) await system.running.killAndRestart('writer');
  }
  const alerts = faults.flatMap((fault) => fault.alerts);
  expectAlerts(await untilFiring(alerts), alerts);
});
