import { until } from '@sluice/shared/testing/until';
import type { Page, Request } from 'playwright-core';
import { noteErrors, openPage } from '../browser.ts';
import { PAGE } from '../clients.ts';
import type { ProgramOutcome } from '../programs/program.ts';
import type { PosthogPage } from './clients.ts';
import { type PosthogStep, VISITOR } from './steps.ts';

/** The build that a `<script>` loads. It loads further scripts from ingest-api. */
const SCRIPT = 'posthog-js/dist/array.js';

/** What a page gets. */
interface PageInput {
  /** The address of ingest-api. */
  readonly url: string;
  readonly key: string;
  readonly steps: readonly PosthogStep[];
  readonly paceMs: number;
  readonly options: object;
  readonly visitor: string;
}

export interface PageRun extends Omit<PageInput, 'options' | 'visitor'> {
  /** Resolves when ingest-api has all events. */
  readonly received: () => Promise<void>;
  /** Errors of the network are expected. Default: everything that fails is an error. */
  readonly withFaults?: boolean;
}

/** Captures events in a page of Chromium that has posthog-js, and waits until all are received. */
export async function runInPage(
  { options, left }: PosthogPage,
  { received, withFaults, ...input }: PageRun,
): Promise<ProgramOutcome> {
  await using opened = await openPage(SCRIPT);
  const { page } = opened;
  const errors: string[] = [];
  if (!withFaults) watch(page, input.url, errors);
  const underWay = requestsUnderWay(page);
  await page.goto(PAGE.url);
  await page.evaluate(captureSteps, { ...input, options, visitor: VISITOR });
  if (left) {
    // On a busy machine posthog-js has begun to send what it captured first. A request that the browser ends with the page is
    // lost, also to PostHog: what is tried here is what it sends when the page is left.
    await until('the requests under way to end', async () => underWay.size === 0);
    await page.goto('about:blank');
  }
  await received();
  return { errors, delivered: errors.length === 0 ? [...input.steps.keys()] : [] };
}

/** Returns the requests of a page that have not ended, as they change. */
function requestsUnderWay(page: Page): ReadonlySet<Request> {
  const underWay = new Set<Request>();
  page.on('request', (request) => underWay.add(request));
  page.on('requestfinished', (request) => underWay.delete(request));
  page.on('requestfailed', (request) => underWay.delete(request));
  return underWay;
}

/** Notes everything that fails in the page. */
function watch(page: Page, url: string, errors: string[]): void {
  noteErrors(page, url, errors);
  page.on('requestfinished', async (request) => {
    const status = (await request.response())?.status() ?? 0;
    if (status !== 200) errors.push(`${request.url()}: ${status}`);
  });
}

/** Runs in the page: it can use nothing from outside. */
const captureSteps = async ({ url, key, steps, paceMs, options, visitor }: PageInput): Promise<void> => {
  type Method = (...args: unknown[]) => unknown;
  const { posthog } = globalThis as unknown as { posthog: Record<string, Method> };
  await new Promise<void>((loaded) => {
    posthog['init']?.(key, {
      api_host: url,
      bootstrap: { distinctID: visitor },
      // Without it, what a browser that a program drives captures is dropped.
      opt_out_useragent_filter: true,
      ...{ autocapture: false, capture_pageview: false, capture_pageleave: false },
      ...options,
      loaded: () => loaded(),
    });
  });
  // What posthog-js reads of its configuration decides how it sends.
  await new Promise((done) => setTimeout(done, 500));
  for (const step of steps) {
    switch (step.do) {
      case 'capture':
        posthog['capture']?.(step.event, step.properties, step.timestamp ? { timestamp: step.timestamp } : {});
        break;
      case 'identify':
        posthog['identify']?.(step.distinctId, step.set, step.setOnce);
        break;
      case 'group':
        posthog['group']?.(step.type, step.key, step.properties);
        break;
      case 'alias':
        posthog['alias']?.(step.alias);
    }
    await new Promise((done) => setTimeout(done, paceMs));
  }
};
