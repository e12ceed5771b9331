import { launchChromium } from '../../tests/kit/clients/chromium.ts';
import { System } from '../processes/system.ts';
import { type Benchmark, type Figure, figureOf } from '../report/benchmark.ts';

/** How much slower the browser's CPU is made. */
const CPU_SLOWDOWN = 4;

/** Fast 3G as Lighthouse emulates it: the latency of a round trip in milliseconds, and bytes a second. */
const FAST_3G = { offline: false, latency: 150, downloadThroughput: 1_600_000 / 8, uploadThroughput: 750_000 / 8 };

const BAR = { atMost: 1_000 };

const DAY_MS = 86_400_000;

export const CONSOLE: Benchmark<{ rounds: number }> = {
  name: 'console',
  title: 'The console on a slow machine and network',
  method: `The home page of the console in Chromium, signed in, without a cache, on a CPU that is ${CPU_SLOWDOWN} times slower and a network of ${FAST_3G.latency} ms and 1.6 Mbit/s (Lighthouse's fast 3G). The times count from the navigation. "Transferred" is everything that came until then.`,
  size: { rounds: 10 },
  measure,
};

interface Opening {
  /** When something was painted first, in milliseconds. */
  readonly paintMs: number;
  /** When the first number was there, in milliseconds. */
  readonly numberMs: number;
  readonly kilobytes: number;
}

async function measure({ rounds }: { rounds: number }): Promise<readonly Figure[]> {
  await using system = await System.start();
  await storeEvents(system);
  const openings: Opening[] = [];
  for (let round = 0; round < rounds; round += 1) openings.push(await openHomePage(system));
  const row = 'Home page';
  const values = (name: keyof Opening) => openings.map((opening) => opening[name]);
  return [
    figureOf(row, 'first content', 'ms', values('paintMs'), BAR),
    figureOf(row, 'first number', 'ms', values('numberMs')),
    figureOf(row, 'transferred', 'kB', values('kilobytes')),
  ];
}

async function storeEvents({ pipeline }: System): Promise<void> {
  const now = Date.now();
  const events = Array.from({ length: 1_000 }, (_, index) => ({
    event: `event ${index % 20}`,
    timestamp: new Date(now - (index / 1_000) * 30 * DAY_MS).toISOString(),
  }));
  await pipeline.submit({ foreignUserGroupId: 'acme', foreignUserId: 'jane', events });
  await pipeline.drained();
}

async function openHomePage({ pipeline }: System): Promise<Opening> {
  const browser = await launchChromium();
  try {
    const page = await browser.newPage();
    await page.addInitScript(`sessionStorage.setItem('sluice-key', ${JSON.stringify(pipeline.key)})`);
    const devtools = await page.context().newCDPSession(page);
    await devtools.send('Network.enable');
    await devtools.send('Network.emulateNetworkConditions', FAST_3G);
    await devtools.send('Emulation.setCPUThrottlingRate', { rate: CPU_SLOWDOWN });
    await page.goto(`${pipeline.services['query-api'].url}/console/`);
    await page.locator('.figures .figure').filter({ hasNotText: '…' }).first().waitFor();
    return (await page.evaluate(`({
      paintMs: performance.getEntriesByName('first-contentful-paint')[0].startTime,
      numberMs: performance.now(),
      kilobytes: performance.getEntries().reduce((sum, { transferSize = 0 }) => sum + transferSize, 0) / 1000,
    })`)) as Opening;
  } finally {
    await browser.close();
  }
}
