import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { TooLate } from '@sluice/shared/testing/until';
import type { Page, Request } from 'playwright-core';
import { MAKE_CALLS, type PageInput } from './browser-calls.ts';
import { type BrowserPage, PAGE } from './clients.ts';
import { NPM_FOLDER } from './installation.ts';
import type { ProgramOutcome } from './programs/program.ts';
import { serveHost, sharedBrowser } from './shared-browser.ts';

const DELIVERY_MS_MAX = 60_000;

/**
 * Makes calls in a page of Chromium that has the client's own built file, and waits until all are delivered.
 *
 * @param received resolves when ingest-api has all calls. Chromium reports nothing of what a page sends when it is left.
 */
export async function runInBrowser(
  { script, api, options, left }: BrowserPage,
  input: Omit<PageInput, 'options' | 'loading'>,
  received: () => Promise<void>,
): Promise<ProgramOutcome> {
  await using opened = await openPage(script);
  const { page } = opened;
  const errors: string[] = [];
  const delivered = watch(page, input, errors);
  await page.goto(PAGE.url);
  const loading = await documentedLoading(input.url, options);
  await page.evaluate(MAKE_CALLS[api], { ...input, options, loading });
  if (left) {
    // What the client loads for itself must not be cut off.
    await page.waitForLoadState('networkidle');
    await page.goto('about:blank');
    await received();
  } else {
    await delivered();
  }
  return { errors, delivered: errors.length === 0 ? [...input.calls.keys()] : [] };
}

/** Returns the example of docs/guide/producers.md with an address and options. */
async function documentedLoading(url: string, options: object): Promise<string> {
  const text = await readFile(join(import.meta.dirname, '..', '..', '..', 'docs', 'guide', 'producers.md'), 'utf8');
  const example = /^```js\n(AnalyticsBrowser\.load.*?)'localhost:4000(.*?)protocol: 'http'(.*?);\n```$/ms.exec(text);
  if (!example) throw new Error('docs/guide/producers.md no longer shows how @segment/analytics-next is loaded');
  const [, start, middle, end] = example;
  const settings = JSON.stringify({ protocol: 'http', ...options }).slice(1, -1);
  return `${start}'${new URL(url).host}${middle}${settings}${end}`;
}

/** Notes errors of a page, and requests that are neither for itself nor for ingest-api at `url`. */
export function noteErrors(page: Page, url: string, errors: string[]): void {
  page.on('pageerror', (error) => errors.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error') errors.push(message.text());
  });
  page.on('request', (request) => {
    const { origin, protocol } = new URL(request.url());
    if (protocol !== 'about:' && ![PAGE.origin, url].includes(origin)) errors.push(`asked ${request.url()}`);
  });
}

/** Notes everything that fails in the page. The returned function waits until responses have confirmed all calls. */
function watch(page: Page, { url, calls }: Pick<PageInput, 'url' | 'calls'>, errors: string[]): () => Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let open = calls.length;
  noteErrors(page, url, errors);
  page.on('requestfailed', (request) => errors.push(`${request.url()}: ${request.failure()?.errorText}`));
  page.on('requestfinished', async (request) => {
    const status = (await request.response())?.status() ?? 0;
    if (status !== 200) errors.push(`${request.url()}: ${status}`);
    open -= callsOf(request);
    if (open === 0) resolve();
  });
  return async () => {
    const timer = setTimeout(() => {
      // The errors say more.
      if (errors.length > 0) resolve();
      else reject(new TooLate(`${open} calls were not delivered within ${DELIVERY_MS_MAX} ms`));
    }, DELIVERY_MS_MAX);
    await promise.finally(() => clearTimeout(timer));
  };
}

function callsOf(request: Request): number {
  if (request.method() !== 'POST') return 0;
  const body = request.postDataJSON() as { batch?: unknown[] };
  return body.batch?.length ?? 1;
}

/** A page without storage, at {@link PAGE}; `await using` closes it. */
export interface OpenedPage extends AsyncDisposable {
  readonly page: Page;
}

/** Serves the page, with a script of the clients, as `/`, and opens an empty page of a browser without storage. */
export async function openPage(script: string): Promise<OpenedPage> {
  await using opened = new AsyncDisposableStack();
  const source = await readFile(join(NPM_FOLDER, 'node_modules', script), 'utf8');
  opened.use(
    serveHost('app.localhost', (request, response) => {
      const isScript = request.url === '/client.js';
      response.setHeader('content-type', isScript ? 'text/javascript; charset=utf-8' : 'text/html; charset=utf-8');
      const page = `<!doctype html><title>${PAGE.title}</title><link rel="icon" href="data:,"><script src="/client.js"></script>`;
      response.end(isScript ? source : page);
    }),
  );
  const context = await (await sharedBrowser()).newContext();
  opened.defer(() => context.close());
  const page = await context.newPage();
  const kept = opened.move();
  return { page, [Symbol.asyncDispose]: () => kept.disposeAsync() };
}
