import {
  type EventNames,
  type EventProperties,
  type EventValues,
  formatCount,
  formatShare,
  GROUPED_FIELDS,
  getJson,
  getRecords,
  isPropertyName,
  joinList,
  key,
  labelOfName,
  OWNERS,
  type Owner,
  type Segment,
  splitList,
  TIME_NAMES,
} from '../base/base.ts';

/** A text to choose, and what helps to choose it. */
export interface Suggestion {
  readonly text: string;
  readonly note: string;
  /** The heading that it is under, with those beside it that have the same. Default: none. */
  readonly heading?: string;
}

/**
 * Returns what there is to choose from for what was typed so far.
 *
 * @throws {ApiError} when query-api refuses or does not respond
 */
export type Suggest = (typed: string, signal: AbortSignal) => Promise<readonly Suggestion[]>;

const SUGGESTIONS_MAX = 20;

/** Number properties are found among so many properties. */
const PROPERTIES_READ = 200;

/** A longer text is nothing to choose from a list; it may not fit into an address either. */
const TEXT_MAX = 1_000;

function pathOf(path: string, typed: string, more: Readonly<Record<string, string>> = {}): string {
  const query = new URLSearchParams({ limit: String(SUGGESTIONS_MAX), ...more });
  if (typed !== '') query.set('prefix', typed);
  return `${path}?${query}`;
}

/** A menu is the same for so many milliseconds. */
const KEPT_MS = 60_000;

/** Menus that were read, by the key that has read them and their path. */
const kept = new Map<string, { readonly body: unknown; readonly until: number }>();

/** Returns a menu of query-api, one that was read within the last minute at once; throws as {@link getRecords} does. */
async function getMenu<Body>(path: string, signal: AbortSignal): Promise<Body> {
  const now = Date.now();
  for (const [name, { until }] of kept) if (until < now) kept.delete(name);
  const name = `${key.value} ${path}`;
  const body = kept.get(name)?.body ?? (await getRecords(path, signal));
  if (!kept.has(name)) kept.set(name, { body, until: now + KEPT_MS });
  return body as Body;
}

function countOf(count: number): string {
  return formatCount(count, 'event');
}

/** Names of events, the most frequent first. */
export const suggestEvents: Suggest = async (typed, signal) => {
  const { results } = await getMenu<EventNames>(pathOf('events/names', typed), signal);
  const counts = new Map<string, number>();
  for (const { event, count } of results) counts.set(event, (counts.get(event) ?? 0) + count);
  return [...counts].map(([text, count]) => ({ text, note: countOf(count) }));
};

/** Returns the properties of events, or of the users or organizations that events are of, as a person reads them. */
async function propertiesOf(
  of: 'event' | Owner,
  typed: string,
  signal: AbortSignal,
  labelOf = labelOfName,
): Promise<readonly Suggestion[]> {
  const { results } = await getMenu<EventProperties>(pathOf('events/properties', typed, { of }), signal);
  const heading = `${of === 'event' ? 'Event' : OWNERS[of]} properties`;
  return results.map(({ path, types, share }) => ({
    text: labelOf(path),
    note: `${types.join(', ')} · ${formatShare(share)}`,
    heading,
  }));
}

/** Returns what was typed of the name of a property of a user or an organization: all of it, or what is behind the `User: `. */
function typedOf(owner: Owner, typed: string): string {
  const label = `${OWNERS[owner]}: `;
  if (typed.length > 0 && label.toLowerCase().startsWith(typed.toLowerCase())) return '';
  return typed.startsWith(label) ? typed.slice(label.length) : typed;
}

/** Returns a function that suggests fields, properties of events, and those of their users and organizations. */
function namesAmong(fields: readonly string[]): Suggest {
  return async (typed, signal) => {
    const properties = await Promise.all([
      propertiesOf('event', typed, signal),
      ...(Object.keys(OWNERS) as Owner[]).map((owner) => propertiesOf(owner, typedOf(owner, typed), signal)),
    ]);
    return [...labelsAmong(fields, typed), ...properties.flat()];
  };
}

const suggestFilters = namesAmong([...GROUPED_FIELDS, 'anonymousId', 'segment', ...TIME_NAMES]);

/** The names that a report can group by, and list the values of. */
export const suggestGroups = namesAmong(GROUPED_FIELDS);

/** Returns a function that suggests the names that a list of users or organizations can be filtered by. */
function namesOfList(owner: Owner): Suggest {
  return async (typed, signal) => [
    ...labelsAmong(['segment'], typed),
    ...(await propertiesOf(owner, typed, signal, (path) => labelOfName(path.slice(owner.length + 1)))),
  ];
}

/** Returns a function that suggests the names that a segment of users or organizations can have. */
function namesOfSegment(owner: Owner): Suggest {
  const times = TIME_NAMES.filter((name) => name.startsWith(`${owner}.`));
  return async (typed, signal) => [
    ...(await propertiesOf(owner, typedOf(owner, typed), signal)),
    ...labelsAmong(times, typed),
  ];
}

function labelsAmong(names: readonly string[], typed: string): readonly Suggestion[] {
  const labels = names.map(labelOfName).filter((label) => label.toLowerCase().startsWith(typed.toLowerCase()));
  return labels.map((text) => ({ text, note: '', heading: 'Fields' }));
}

/**
 * What filters can be of, with what suggests their names, and what stands before these names in a menu of values: those of a list
 * do not say whose they are. `kind` is what a segment must be of to be a filter. Default: any.
 */
export const SUBJECTS = {
  event: { suggest: suggestFilters, prefix: '', kind: undefined },
  user: { suggest: namesOfList('user'), prefix: 'user.', kind: 'users' },
  organization: { suggest: namesOfList('organization'), prefix: 'organization.', kind: 'organizations' },
  userSegment: { suggest: namesOfSegment('user'), prefix: '', kind: undefined },
  organizationSegment: { suggest: namesOfSegment('organization'), prefix: '', kind: undefined },
} as const satisfies Record<
  string,
  { readonly suggest: Suggest; readonly prefix: string; readonly kind?: Segment['of'] | undefined }
>;

export type Subject = keyof typeof SUBJECTS;

/** Returns a function that suggests values of a filter. */
export function valuesOfFilter(subject: Subject, name: string): Suggest {
  const { prefix, kind } = SUBJECTS[subject];
  return name === 'segment' ? suggestSegments(kind) : valuesOf(prefix + name);
}

/** Returns a function that suggests segments. */
function suggestSegments(kind: Segment['of'] | undefined): Suggest {
  return async (typed, signal) => {
    const { segments } = await getJson<{ readonly segments: readonly Segment[] }>('segments', signal);
    return segments
      .filter(({ name, of }) => (kind === undefined || of === kind) && name.startsWith(typed))
      .slice(0, SUGGESTIONS_MAX)
      .map(({ name, of }) => ({ text: name, note: of }));
  };
}

/** Properties that have numbers. */
export const suggestNumbers: Suggest = async (typed, signal) => {
  const path = pathOf('events/properties', typed, { limit: String(PROPERTIES_READ) });
  const { results } = await getMenu<EventProperties>(path, signal);
  return results
    .filter(({ path, types }) => types.includes('number') && path.startsWith('properties.'))
    .slice(0, SUGGESTIONS_MAX)
    .map(({ path, share }) => ({ text: labelOfName(path), note: `${Math.round(share * 100)} % of events` }));
};

/** Whether query-api lists the values of a field or property. */
function hasValues(name: string): boolean {
  return GROUPED_FIELDS.some((field) => field === name) || name === 'anonymousId' || isPropertyName(name);
}

/** Returns a function that suggests values of a field or property; nothing where query-api lists none. */
export function valuesOf(name: string): Suggest {
  return async (typed, signal) => {
    if (!hasValues(name)) return [];
    const { results } = await getMenu<EventValues>(pathOf('events/values', typed, { property: name }), signal);
    return results
      .map(({ value, count }) => ({
        text: typeof value === 'string' ? value : JSON.stringify(value),
        note: countOf(count),
      }))
      .filter(({ text }) => text !== '' && text.length <= TEXT_MAX);
  };
}

/** Returns a function that suggests the last item of a list. */
export function itemsOf(suggest: Suggest): Suggest {
  return async (typed, signal) => {
    const items = splitList(typed);
    const before = items.slice(0, -1);
    const found = await suggest(items.at(-1) ?? '', signal);
    return found.map(({ text, note }) => ({ text: joinList([...before, text]), note }));
  };
}
