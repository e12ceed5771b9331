import { hrefOf, parseRoute, type Route, without } from '../base/base.ts';

const ITEM = 'sluice-link';

/** A read-only link to a dashboard, which this tab was opened by. */
export interface Link {
  readonly dashboard: string;
  readonly key: string;
}

/**
 * Takes the key out of the address, if it has one (`#/dashboards/ID?key=vk_…`), so that neither the address bar nor the history
 * of the tab shows it. It is kept until the tab is closed, or query-api refuses it.
 */
export function takeLink(): void {
  const { path, params } = parseRoute(location.hash);
  const [page, dashboard] = path;
  const key = params.get('key');
  if (page !== 'dashboards' || dashboard === undefined || key === null) return;
  sessionStorage.setItem(ITEM, JSON.stringify({ dashboard, key } satisfies Link));
  history.replaceState(null, '', hrefOf(path, without(params, 'key')));
}

/** Forgets the link that this tab was opened by: from the next address on, a dashboard is that of the console again. */
export function forgetLink(): void {
  sessionStorage.removeItem(ITEM);
}

/** Returns the link that the address was opened by, if it was. */
export function linkOf({ path: [page, id] }: Route): Link | undefined {
  const link = parseLink(sessionStorage.getItem(ITEM));
  return page === 'dashboards' && link?.dashboard === id ? link : undefined;
}

function parseLink(text: string | null): Link | undefined {
  return text === null ? undefined : (JSON.parse(text) as Link);
}

/** Returns the address that opens a dashboard by a link. What follows `#` is never sent to a server. */
export function addressOf({ dashboard, key }: Link): string {
  const { origin, pathname } = location;
  return `${origin}${pathname}#/dashboards/${encodeURIComponent(dashboard)}?key=${encodeURIComponent(key)}`;
}
