// These functions run in the page: they can use nothing from outside.
import type { TestCall } from './calls.ts';
import type { BrowserPage } from './clients.ts';

/** What a page gets. */
export interface PageInput {
  /** The address of ingest-api. */
  readonly url: string;
  readonly key: string;
  readonly calls: readonly TestCall[];
  readonly anonymousId: string;
  readonly options: object;
  /** The code of docs/guide/producers.md that loads `@segment/analytics-next`, with the address and the options. */
  readonly loading: string;
}

type MakeCalls = (input: PageInput) => Promise<void>;

type Method = (...args: unknown[]) => unknown;

/** Makes the calls with `@segment/analytics-next`. */
const callSegment: MakeCalls = async ({ key, calls, anonymousId, loading }) => {
  const { AnalyticsNext } = globalThis as unknown as { AnalyticsNext: { AnalyticsBrowser: unknown } };
  const load = new Function('AnalyticsBrowser', 'key', `return ${loading}`);
  const [analytics]: [Record<string, Method>] = await load(AnalyticsNext.AnalyticsBrowser, key);
  const failed: unknown[] = [];
  analytics['on']?.('error', (error: unknown) => failed.push(error));
  analytics['setAnonymousId']?.(anonymousId);
  await Promise.all(
    calls.map(({ type, userId, previousId, groupId, event, category, name, properties, traits, timestamp }) => {
      const settings = timestamp ? { timestamp } : {};
      const args = {
        identify: [userId, traits, settings],
        track: [event, properties, settings],
        group: [groupId, traits, settings],
        page: [category, name, properties, settings],
        screen: [category, name, properties, settings],
        alias: [userId, previousId, settings],
      };
      return analytics[type]?.(...args[type]);
    }),
  );
  if (failed.length > 0) throw new Error(JSON.stringify(failed));
};

/** Makes the calls with `@rudderstack/analytics-js`, which has no `screen`. */
const callRudder: MakeCalls = async ({ url, key, calls, anonymousId, options }) => {
  const { rudderanalytics } = globalThis as unknown as {
    rudderanalytics: { RudderAnalytics: new () => Record<string, Method> };
  };
  const analytics = new rudderanalytics.RudderAnalytics();
  analytics['load']?.(key, url, { configUrl: url, ...options });
  await new Promise<void>((resolve) => {
    analytics['ready']?.(resolve);
  });
  analytics['setAnonymousId']?.(anonymousId);
  for (const { type, userId, previousId, groupId, event, category, name, properties, traits, timestamp } of calls) {
    const settings = timestamp ? { originalTimestamp: timestamp.toISOString() } : {};
    const args = {
      identify: [userId, traits, settings],
      track: [event, properties, settings],
      group: [groupId, traits, settings],
      page: [category, name, properties, settings],
      screen: [],
      alias: [userId, previousId, settings],
    };
    analytics[type]?.(...args[type]);
  }
};

/** The function that makes the calls, by the client's API. */
export const MAKE_CALLS: Readonly<Record<BrowserPage['api'], MakeCalls>> = { segment: callSegment, rudder: callRudder };
