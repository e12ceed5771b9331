import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '@sluice/shared/testing/eventually';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { bundle } from '../../packages/client/scripts/bundle.ts';
import type { Client, ClientOptions } from '../../packages/client/src/client.ts';
import type { offlineStore } from '../../packages/client/src/offline.ts';
import { serveHost, sharedBrowser } from '../kit/clients/shared-browser.ts';
import { type HttpProxy, type RequestFate, startHttpProxy } from '../kit/http-proxy.ts';
import type { EventPage } from '../kit/records.ts';
import { type Tenant, takeTenant } from '../kit/shared-pipeline.ts';

/** What the page offers to tests, beside the client under its own name. */
interface PageGlobals {
  createClient(options: ClientOptions): Client;
  offlineStore: typeof offlineStore;
  client: Client;
}

const ORIGIN = 'http://sluice.localhost';

const MODULE = `import { createClient } from '/client.js';
import { offlineStore } from '/offline.js';
Object.assign(globalThis, { createClient, offlineStore });`;

const stack = new DisposableStack();
let pipeline: Tenant;
let browser: Browser;
const files: Record<string, string> = {};

beforeAll(async () => {
  files['/client.js'] = await bundle('client');
  files['/offline.js'] = await bundle('offline');
  stack.use(
    serveHost('sluice.localhost', (request, response) => {
      const code = files[request.url ?? ''];
      response.setHeader('content-type', code === undefined ? 'text/html' : 'text/javascript');
      response.end(code ?? `<!doctype html><link rel="icon" href="data:,"><script type="module">${MODULE}</script>`);
    }),
  );
  [pipeline, browser] = await Promise.all([takeTenant('sluiceclient'), sharedBrowser()]);
});
afterAll(() => stack.dispose());

interface Tested {
  readonly page: Page;
  readonly proxy: HttpProxy;
  /** Opens another page of the same browser, with its storage. */
  open(): Promise<Page>;
}

/** Opens a page in a browser without storage, and a proxy that decides about each request of its client. */
async function openPage(decide: (index: number) => RequestFate = () => 'forward', init = ''): Promise<Tested> {
  const { url } = pipeline.services['ingest-api'];
  const proxy = await startHttpProxy(url, (_, index) => decide(index));
  const context = await browser.newContext();
  await context.addInitScript(init);
  const open = async () => {
    const page = await context.newPage();
    await page.goto(ORIGIN);
    await page.waitForFunction(() => 'offlineStore' in globalThis);
    return page;
  };
  onTestFinished(async () => {
    await context.close();
    await proxy[Symbol.asyncDispose]();
  });
  return { page: await open(), proxy, open };
}

interface Calls {
  readonly event: string;
  readonly count: number;
  readonly first?: number;
  /** Characters of each call. */
  readonly size?: number;
  readonly offline?: boolean;
  readonly batchAgeMsMax?: number;
}

/** Creates the page's client, unless it has one, and makes calls. */
async function track({ page, proxy }: Tested, calls: Calls): Promise<void> {
  await page.evaluate(
    ({ url, key, event, count, first = 0, size = 0, offline, batchAgeMsMax = 600_000 }) => {
      const globals = globalThis as unknown as PageGlobals;
      globals.client ??= globals.createClient({
        ...{ url, key, batchAgeMsMax, batchCallsMax: 5_000 },
        ...(offline && { store: globals.offlineStore() }),
      });
      for (let index = first; index < first + count; index += 1) {
        globals.client.track(event, { index, text: 'x'.repeat(size) }, { anonymousId: 'visitor' });
      }
    },
    { url: proxy.url, key: pipeline.key, ...calls },
  );
}

/** Tells the page what a browser tells it when another tab is selected. Headless browsers do not. */
async function hide(page: Page): Promise<void> {
  await page.evaluate(() => {
    const { document } = globalThis as unknown as { document: EventTarget };
    Object.defineProperty(document, 'visibilityState', { value: 'hidden', configurable: true });
    document.dispatchEvent(new Event('visibilitychange'));
  });
}

/** Closes a page as a person does, and waits until it is gone: until then it has its calls for itself. */
async function closePage(page: Page): Promise<void> {
  const closed = page.waitForEvent('close');
  await page.close({ runBeforeUnload: true });
  await closed;
}

async function flush(page: Page): Promise<number> {
  return await page.evaluate(() => (globalThis as unknown as PageGlobals).client.flush());
}

/** Waits for events of a name, and returns the indexes of all that are stored, in the order of time. */
async function stored(event: string, count: number): Promise<number[]> {
  const total = async () => (await pipeline.get<EventPage>(`/events?event=${event}&limit=0`)).body.total;
  await eventually(total).toBeGreaterThanOrEqual(count);
  await pipeline.drained();
  const { body } = await pipeline.get<EventPage>(`/events?event=${event}&orderByDirection=ASC&limit=1000`);
  return body.results.map(({ properties }) => Number(properties['index']));
}

const range = (count: number) => Array.from({ length: count }, (_, index) => index);

const countOf = ({ requests }: HttpProxy) => requests.reduce((sum, { calls }) => sum + calls.length, 0);

test('a page on another origin sends its calls when they are old', async () => {
  const tested = await openPage();
  await track(tested, { event: 'old', count: 40, size: 100, batchAgeMsMax: 200 });
  await eventually(() => countOf(tested.proxy)).toBe(40);
  expect(tested.proxy.requests[0]?.isCompressed).toBe(true);
  expect(await flush(tested.page)).toBe(0);
  expect(await stored('old', 40)).toEqual(range(40));
});

const ENDINGS: Readonly<Record<string, (page: Page) => Promise<unknown>>> = {
  closed: closePage,
  left: (page) => page.goto('about:blank'),
};

test.each(Object.entries(ENDINGS))('calls that wait when a page is %s are stored once', async (name, end) => {
  const tested = await openPage();
  await track(tested, { event: name, count: 50, size: 500 });
  await end(tested.page);
  await eventually(() => countOf(tested.proxy)).toBe(50);
  expect(await stored(name, 50)).toEqual(range(50));
});

test('when a page is closed while a request is in flight, that one and the calls after it arrive', async () => {
  const tested = await openPage();
  await track(tested, { event: 'inflight', count: 20, size: 500 });
  await tested.page.evaluate(() => void (globalThis as unknown as PageGlobals).client.flush());
  await track(tested, { event: 'inflight', count: 20, first: 20, size: 500 });
  await tested.page.goto('about:blank');
  await eventually(() => countOf(tested.proxy)).toBeGreaterThanOrEqual(40);
  expect((await stored('inflight', 40)).sort((a, b) => a - b)).toEqual(range(40));
});

test('what a browser does not send for a closed page, the next page sends from the offline queue', async () => {
  const tested = await openPage();
  await track(tested, { event: 'offline', count: 200, size: 1_000, offline: true });
  await tested.page.goto('about:blank');
  await eventually(() => countOf(tested.proxy)).toBeGreaterThan(30);
  expect(countOf(tested.proxy)).toBeLessThan(60);
  const next = { ...tested, page: await tested.open() };
  await track(next, { event: 'offline', count: 5, first: 200, offline: true });
  expect(await flush(next.page)).toBe(0);
  expect(await next.page.evaluate(() => Object.keys(localStorage))).toEqual([]);
  expect(await stored('offline', 205)).toEqual(range(205));
});

test('without a network for a page and its successor, the third page delivers everything in order', async () => {
  let isDown = true;
  const tested = await openPage(() => (isDown ? 'refuse' : 'forward'));
  await track(tested, { event: 'down', count: 10, offline: true });
  await closePage(tested.page);
  const second = { ...tested, page: await tested.open() };
  await track(second, { event: 'down', count: 10, first: 10, offline: true });
  await closePage(second.page);
  isDown = false;
  const third = { ...tested, page: await tested.open() };
  await track(third, { event: 'down', count: 10, first: 20, offline: true });
  expect(await flush(third.page)).toBe(0);
  expect(await stored('down', 30)).toEqual(range(30));
});

test('a page that is hidden several times and lives on has each call stored once', async () => {
  const tested = await openPage((index) => (index === 0 ? 'lose' : 'forward'));
  await track(tested, { event: 'hidden', count: 10 });
  await hide(tested.page);
  await hide(tested.page);
  await track(tested, { event: 'hidden', count: 10, first: 10 });
  await hide(tested.page);
  expect(await flush(tested.page)).toBe(0);
  expect(countOf(tested.proxy)).toBeGreaterThan(20);
  expect(countOf(tested.proxy)).toBeLessThanOrEqual(40);
  expect(await stored('hidden', 20)).toEqual(range(20));
});

test('after a page was hidden, calls are sent again when they are old', async () => {
  const tested = await openPage();
  await track(tested, { event: 'shown', count: 5, batchAgeMsMax: 500 });
  await hide(tested.page);
  await eventually(() => countOf(tested.proxy)).toBe(5);
  // The time of the first calls passes while none is waiting.
  await delay(1_000);
  await track(tested, { event: 'shown', count: 5, first: 5 });
  await eventually(() => countOf(tested.proxy)).toBe(10);
  expect(await stored('shown', 10)).toEqual(range(10));
});

test('a browser without keepalive sends a beacon; a page that lives on sends again, and each call is stored once', async () => {
  const tested = await openPage(undefined, 'delete Request.prototype.keepalive;');
  expect(await tested.page.evaluate(() => 'keepalive' in Request.prototype)).toBe(false);
  await track(tested, { event: 'beacon', count: 10 });
  await hide(tested.page);
  await eventually(() => countOf(tested.proxy)).toBe(10);
  expect(await flush(tested.page)).toBe(0);
  expect(countOf(tested.proxy)).toBe(20);
  expect(await stored('beacon', 10)).toEqual(range(10));
  await track(tested, { event: 'beacon', count: 5, first: 10 });
  await tested.page.goto('about:blank');
  await eventually(() => countOf(tested.proxy)).toBe(25);
  expect(await stored('beacon', 15)).toEqual(range(15));
});
