import { signal } from '@preact/signals';

/** What the address of the page shows, from behind its `#`: `#/events?event=signed_up`. The server never sees it. */
export interface Route {
  /** `['users', 'jane']` of `#/users/jane`. */
  readonly path: readonly string[];
  readonly params: URLSearchParams;
}

/** Parses the part of an address from its `#`. */
export function parseRoute(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split(/\?(.*)/s);
  return { path: path.split('/').filter(Boolean).map(decoded), params: new URLSearchParams(query) };
}

/** Returns the address of a page of the console, for links. */
export function hrefOf(path: readonly string[], params?: URLSearchParams): string {
  const query = params?.toString() ?? '';
  return `#/${path.map(encodeURIComponent).join('/')}${query === '' ? '' : `?${query}`}`;
}

/** Returns a copy of the parameters without some of them. */
export function without(params: URLSearchParams, ...names: readonly string[]): URLSearchParams {
  return new URLSearchParams([...params].filter(([name]) => !names.includes(name)));
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Shows another address: as one more entry of the history, or in place of the last one. */
export function goTo(href: string, inPlace: boolean): void {
  if (inPlace) location.replace(href);
  else location.hash = href;
}

/** What the address shows now. */
export const route = signal<Route>({ path: [], params: new URLSearchParams() });

/**
 * Keeps {@link route} up to date from now on.
 *
 * @param onAddress is called before each address is read, and may replace it
 */
export function followAddress(onAddress: () => void): void {
  const read = () => {
    onAddress();
    route.value = parseRoute(location.hash);
  };
  addEventListener('hashchange', read);
  read();
}
