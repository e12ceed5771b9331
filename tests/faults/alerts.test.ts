import { setTimeout as delay } from 'node:timers/promises';
import { explain, until } from '@sluice/shared/testing/until';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ALERTS_OF_ONE_SERVER, type AlertFault, AlertFaults } from '../kit/alert-faults.ts';
import { expectAlerts } from '../kit/expect-alerts.ts';
import { type Load, startLoad } from '../kit/load.ts';
import { alertsOver, type Scrape, scrape } from '../kit/rules-over-scrapes.ts';

// What is scraped before and after each fault is given to promtool, which evaluates the rules as if an hour lay between
// them. At night a Prometheus scrapes and evaluates all the time: tests/night/alerts.test.ts.

/** Every time of the rules is divided by it, so that a lag of ten minutes is one of ten seconds. */
const FACTOR = 60;

let system: AlertFaults;
/** While nothing fails. */
let healthy: Scrape;
const caused: string[] = [];

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

async function cause({ alerts, cause }: AlertFault): Promise<void> {
  caused.push(...alerts);
  await cause();
}

/** Waits until these alerts fire, and returns all that fire then. */
async function untilFiring(alerts: readonly string[], before = healthy): Promise<readonly string[]> {
  let firing: readonly string[] = [];
  await until(`${alerts.join(', ')} to fire`, async () => {
    // An evaluation takes half a second of a core.
    await delay(3_000);
    firing = await alertsOver({ before, after: await scrape(system.targets), factor: FACTOR, states: ['firing'] });
    return alerts.every((alert) => firing.includes(alert));
  }).catch(explain(() => `What fires is ${firing.join(', ')}`));
  return firing;
}

test('over a healthy load no alert fires, or is pending', async () => {
  await system.useEverything();
  await using load = startUsual(4);
  await using _reading = system.readAllTheTime();
  await untilAccepted(load, 100);
  healthy = await scrape(system.targets);
  await untilAccepted(load, 300);
  const after = await scrape(system.targets);
  const seen = await alertsOver({ before: healthy, after, states: ['pending', 'firing'] });
  expectAlerts(seen, []);
});

test('a webhook whose receiver fails lags, and one whose receiver is gone is paused', async () => {
  for (const fault of system.ofWebhooks()) {
    await cause(fault);
    await untilFiring(fault.alerts);
  }
  await system.deleteWebhook();
});

test('each fault of a process, of a clock, of rows, of ClickHouse and of what was forgotten fires its alert', async () => {
  await using load = startUsual(2);
  await untilAccepted(load, 20);
  const faults = system.ofEverythingElse();
  for (const fault of faults) {
    await cause(fault);
    if (!fault.alerts.includes('SluiceRetentionNear')) continue;
    // What Kafka keeps is read once a minute, and at a start.
    await system.running.killAndRestart('writer');
  }
  try {
    const alerts = faults.flatMap((fault) => fault.alerts);
    await untilFiring(alerts);
    const disk = system.ofTheDisk();
    await cause(disk);
    const all = [...alerts, ...disk.alerts];
    expectAlerts(await untilFiring(all), all);
  } finally {
    await system.repair();
  }
});

test('while Kafka is down, after it deleted rows that were not stored, and after it lost them, the alerts fire; every alert had its fault', async () => {
  {
    await using _load = startUsual(4);
    await cause(system.ofKafkaDown());
    const isRefusal = (series: string) =>
      series.startsWith('http_request_duration_seconds_count{') &&
      ['method="POST"', 'status="503"'].every((label) => series.includes(label));
    const before = await until('the first refusals', async () => {
      const found = await scrape(system.targets);
      return [...found.values].some(([series, count]) => isRefusal(series) && count > 0) ? found : undefined;
    });
    await untilFiring(system.ofKafkaDown().alerts, before);
  }
  await system.restartKafka();
  for (const fault of system.ofKafkasLosses()) {
    await cause(fault);
    await untilFiring(fault.alerts);
  }
  expect(caused.sort()).toEqual(ALERTS_OF_ONE_SERVER);
});
