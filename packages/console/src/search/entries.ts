import {
  type Dashboard,
  type EventNames,
  type FoundEntity,
  formatCount,
  getAll,
  getJson,
  hrefOf,
  type SearchResults,
  type Segment,
  type View,
} from '../base/base.ts';
import { hrefOfView, REPORT_TITLES } from '../explore/explore.ts';
import type { Suggestion } from '../filters/filters.ts';

/** What can be found: an address, or something to do. */
export interface SearchEntry extends Suggestion {
  readonly heading: string;
  /** Opens it, or does it. */
  readonly run: () => void;
}

/** So many of each heading are shown. */
const ENTRIES_MAX = 6;

function opening(href: string): () => void {
  return () => {
    location.hash = href;
  };
}

/** Returns those of some entries in which each word of a text is, in any case; first those that begin with it. */
export function entriesWith(text: string, entries: readonly SearchEntry[]): readonly SearchEntry[] {
  const whole = text.trim().toLowerCase();
  const words = whole.split(/\s+/);
  const found = entries.filter(({ text: own }) => words.every((word) => own.toLowerCase().includes(word)));
  const begins = (entry: SearchEntry) => entry.text.toLowerCase().startsWith(whole);
  const sorted = found.toSorted((one, other) => Number(begins(other)) - Number(begins(one)));
  // Everything is there while nothing is typed, so that somebody sees what there is.
  if (whole === '') return sorted;
  return [...Map.groupBy(sorted, ({ heading }) => heading).values()].flatMap((own) => own.slice(0, ENTRIES_MAX));
}

/** Returns the views, dashboards and segments of the workspace. What cannot be read is not there. */
export async function savedEntries(signal: AbortSignal): Promise<readonly SearchEntry[]> {
  const orNone = <Entry>(loaded: Promise<readonly Entry[]>) => loaded.catch((): readonly Entry[] => []);
  const [dashboards, views, segments] = await Promise.all([
    orNone(getAll<'dashboards', Dashboard>('dashboards', signal).then((found) => found.dashboards)),
    orNone(getAll<'views', View>('views', signal).then((found) => found.views)),
    orNone(getJson<{ segments: readonly Segment[] }>('segments', signal).then((found) => found.segments)),
  ]);
  return [
    ...dashboards.map(({ id, name }) => {
      return { heading: 'Dashboards', text: name, note: '', run: opening(hrefOf(['dashboards', id])) };
    }),
    ...views.map((view) => {
      return { heading: 'Views', text: view.name, note: REPORT_TITLES[view.report], run: opening(hrefOfView(view)) };
    }),
    ...segments.map(({ name, of }) => {
      return { heading: 'Segments', text: name, note: of, run: opening(hrefOf(['segments', name])) };
    }),
  ];
}

/** Returns the users, organizations and events that query-api finds. */
export async function storedEntries(text: string, signal: AbortSignal): Promise<readonly SearchEntry[]> {
  const sought = text.trim();
  if (sought === '') return [];
  const limit = String(ENTRIES_MAX);
  const [people, events] = await Promise.all([
    getJson<SearchResults>(`search?${new URLSearchParams({ q: sought, limit })}`, signal),
    getJson<EventNames>(`events/names?${new URLSearchParams({ prefix: sought, limit })}`, signal),
  ]);
  return [
    ...people.users.map((found) => entryOfEntity('users', found)),
    ...people.organizations.map((found) => entryOfEntity('organizations', found)),
    ...events.results.map(({ event, count }) => {
      const href = hrefOf(['events'], new URLSearchParams({ event }));
      return { heading: 'Events', text: event, note: formatCount(count, 'event'), run: opening(href) };
    }),
  ];
}

function entryOfEntity(path: 'users' | 'organizations', { id, name, email }: FoundEntity): SearchEntry {
  const [text = id, ...rest] = [name, email, id].filter((one) => one !== null);
  return {
    ...{ heading: path === 'users' ? 'Users' : 'Organizations', text, note: rest.join(' · ') },
    run: opening(hrefOf([path, id])),
  };
}

/** Returns entries of pages, by their names in addresses and their titles. */
export function entriesOfPages(pages: readonly (readonly [name: string, title: string])[]): readonly SearchEntry[] {
  return pages.map(([name, text]) => ({ heading: 'Pages', text, note: '', run: opening(hrefOf([name])) }));
}
