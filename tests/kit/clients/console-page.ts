import type { Browser, BrowserContext, Page } from 'playwright-core';
import { onTestFinished } from 'vitest';
import type { Pipeline } from '../pipeline.ts';
import { shown } from './pages.ts';

export const SCHEMES = ['light', 'dark'] as const;

/** Where the console is served, and what opens it. */
export interface Served {
  readonly pipeline: Pipeline;
  readonly browser: Browser;
}

export interface Opened {
  readonly page: Page;
  readonly context: BrowserContext;
  /** What went wrong in the page, a violation of its policy included, and requests that left query-api. */
  readonly faults: readonly string[];
}

export interface Look {
  readonly scheme?: (typeof SCHEMES)[number];
  /** The time zone of the browser. Default: Berlin. */
  readonly zone?: string;
}

/** Opens the console in a browser without storage, for the time of the test. */
export async function openConsole(
  { pipeline, browser }: Served,
  hash = '',
  { scheme = 'light', zone = 'Europe/Berlin' }: Look = {},
): Promise<Opened> {
  const { url } = pipeline.services['query-api'];
  const context = await browser.newContext({ colorScheme: scheme, timezoneId: zone, locale: 'en-GB' });
  onTestFinished(() => context.close());
  const page = await context.newPage();
  const faults: string[] = [];
  page.on('pageerror', (error) => faults.push(String(error)));
  page.on('console', (message) => {
    // Chromium reports every status from 400 as an error of the page.
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
      faults.push(message.text());
  });
  page.on('request', (request) => {
    if (new URL(request.url()).origin !== url) faults.push(`asked ${request.url()}`);
    if (request.url().includes(pipeline.key)) faults.push(`the key is in ${request.url()}`);
  });
  await page.goto(`${url}/console/${hash}`);
  return { page, context, faults };
}

/** Opens the console and signs in, by keyboard. */
export async function openSignedInConsole(served: Served, hash?: string, look?: Look): Promise<Opened> {
  const opened = await openConsole(served, hash, look);
  await opened.page.getByLabel('API key').focus();
  await opened.page.keyboard.type(served.pipeline.key);
  await opened.page.keyboard.press('Enter');
  await shown(opened.page.getByRole('navigation', { name: 'Pages', exact: true }));
  return opened;
}
