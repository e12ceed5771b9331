import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, expect, onTestFinished } from 'vitest';
import type { Pipeline } from '../pipeline.ts';
import { shown, takePicture, violationsOf } from './pages.ts';

export const SCHEMES = ['light', 'dark'] as const;

type Scheme = (typeof SCHEMES)[number];

let looksInEachWay = false;

/** Makes {@link looks} return all from now on, in this process. */
export function lookInEachWay(): void {
  looksInEachWay = true;
}

/** Returns the pages that this run looks at, or the ways in which it does: in the build the first ones, at night all. */
export function looks<Way>(inBuild: readonly Way[], atNight: readonly Way[]): readonly Way[] {
  return looksInEachWay ? [...inBuild, ...atNight] : inBuild;
}

/** The rules of axe-core that look at colors, but for the one that it leaves out by default. */
const RULES_OF_COLORS = ['color-contrast', 'link-in-text-block'];

/** Where the console is served, and what opens it. */
export interface Served {
  readonly pipeline: Pick<Pipeline, 'services' | 'key'>;
  readonly browser: Browser;
}

export interface Opened {
  readonly page: Page;
  readonly context: BrowserContext;
  /** What went wrong in the page, a violation of its policy included, and requests that left query-api. */
  readonly faults: readonly string[];
}

export interface Look {
  readonly scheme?: Scheme;
  /** The time zone of the browser. Default: Berlin. */
  readonly zone?: string;
}

/** Opens the console in a browser without storage, for the time of the test. */
export async function openConsole(served: Served, hash = '', look: Look = {}): Promise<Opened> {
  const { opened, show } = await newConsole(served, look);
  onTestFinished(() => opened.context.close());
  await show(hash);
  return opened;
}

/** Opens the console and signs in, with a key that is pasted. */
export async function openSignedInConsole(served: Served, hash?: string, look?: Look): Promise<Opened> {
  const opened = await openConsole(served, hash, look);
  await signIn(opened.page, served);
  return opened;
}

/**
 * Expects that axe-core finds nothing on a page, at night in the colors of either scheme, and keeps a picture of each.
 *
 * @param name of the picture, which the scheme and the suffix follow
 */
export async function expectAccessible(page: Page, name: string, suffix = ''): Promise<void> {
  for (const colorScheme of looks<Scheme>(['light'], ['dark'])) {
    await page.emulateMedia({ colorScheme });
    // Nothing but colors depends on the scheme.
    const found = await violationsOf(page, colorScheme === 'light' ? undefined : RULES_OF_COLORS);
    expect([name, colorScheme, found]).toEqual([name, colorScheme, []]);
    await takePicture(page, `${name}-${colorScheme}${suffix}`);
  }
}

/** Opens what else can be done with the only chart of a page, by keyboard, unless it is open. */
export async function openMore(page: Page): Promise<void> {
  const more = page.locator('summary', { hasText: 'More of the chart' });
  await more.focus();
  if (!(await more.evaluate(({ parentElement }) => parentElement?.hasAttribute('open'))))
    await page.keyboard.press('Enter');
}

/** Keeps a picture of a page in the colors of either scheme, named as {@link expectAccessible} does. */
export async function takePictures(page: Page, name: string, suffix = ''): Promise<void> {
  for (const colorScheme of SCHEMES) {
    await page.emulateMedia({ colorScheme });
    await takePicture(page, `${name}-${colorScheme}${suffix}`);
  }
}

/** The console in one tab for many tests, which look at its pages one after the other. */
export interface Tour {
  /**
   * Shows a page, with nothing left of the one before, in the colors of the light scheme. What goes wrong from then on is in
   * the faults of the returned object.
   */
  show(hash: string): Promise<Opened>;
}

/** Prepares a {@link Tour} of a console that is signed in. It is called where tests are defined. */
export function tourOf(serve: () => Served, look: Look = {}): Tour {
  let tour: Promise<Tab> | undefined;
  afterAll(async () => (await tour)?.opened.context.close());
  const start = async () => {
    const served = serve();
    const tab = await newConsole(served, look);
    await tab.show('#/settings');
    await signIn(tab.opened.page, served);
    return tab;
  };
  return {
    async show(hash) {
      tour ??= start();
      const { opened, faults, show } = await tour;
      // This page shows nothing that others show.
      await show('#/settings');
      await shown(opened.page.getByRole('heading', { level: 1, name: 'Settings' }));
      faults.length = 0;
      await opened.page.emulateMedia({ colorScheme: 'light' });
      await show(hash);
      return opened;
    },
  };
}

interface Tab {
  readonly opened: Opened;
  /** The faults of `opened`. */
  readonly faults: string[];
  show(hash: string): Promise<unknown>;
}

/** Opens an empty tab in a browser without storage. */
async function newConsole(
  { pipeline, browser }: Served,
  { scheme = 'light', zone = 'Europe/Berlin' }: Look,
): Promise<Tab> {
  const { url } = pipeline.services['query-api'];
  const context = await browser.newContext({ colorScheme: scheme, timezoneId: zone, locale: 'en-GB' });
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
  return { opened: { page, context, faults }, faults, show: (hash) => page.goto(`${url}/console/${hash}`) };
}

async function signIn(page: Page, { pipeline }: Served): Promise<void> {
  await page.getByLabel('API key').focus();
  await page.keyboard.insertText(pipeline.key);
  await page.keyboard.press('Enter');
  await shown(page.getByRole('navigation', { name: 'Pages', exact: true }));
}
