/** The fields of an event that a person may choose, by their names in the API. */
const FIELD_LABELS: Readonly<Record<string, string>> = {
  event: 'Event',
  type: 'Type',
  userId: 'User',
  groupId: 'Organization',
  anonymousId: 'Anonymous person',
  instanceId: 'Installation',
  uuid: 'UUID',
  segment: 'Segment',
};

const FIELDS: ReadonlyMap<string, string> = new Map(Object.entries(FIELD_LABELS));

/** The fields that a report can group by and list the values of. */
export const GROUPED_FIELDS = ['event', 'type', 'userId', 'groupId', 'instanceId'] as const;

/** Whose properties and times events are filtered by, as they are now, by what their names begin with. */
export const OWNERS = { user: 'User', organization: 'Organization' } as const;

export type Owner = keyof typeof OWNERS;

/** When users and organizations were seen, which are filters and no groups. */
const TIME_LABELS: ReadonlyMap<string, string> = new Map(
  Object.entries(OWNERS).flatMap(([owner, label]) => [
    [`${owner}.firstSeenAt`, `${label}: first seen`],
    [`${owner}.lastSeenAt`, `${label}: last seen`],
  ]),
);

export const TIME_NAMES: readonly string[] = [...TIME_LABELS.keys()];

const NAME_OF_LABEL: ReadonlyMap<string, string> = new Map(
  [...FIELDS, ...TIME_LABELS].map(([name, label]) => [label, name]),
);

const OWNER_PROPERTY = /^(user|organization)\.properties\.(.+)$/s;

const OWNER_LABEL = new RegExp(`^(${Object.values(OWNERS).join('|')}): (.+)$`, 's');

const PROPERTY = /^(?:(?:user|organization)\.)?properties\./;

/** Whether a name is of a property: of an event, its user or its organization. */
export function isPropertyName(name: string): boolean {
  return PROPERTY.test(name);
}

/** Whether a name is of when a user or an organization was seen. */
export function isTimeName(name: string): boolean {
  return TIME_LABELS.has(name);
}

/** Whether events are filtered by this name: a field, a segment, a time, or a property with its document. */
export function isFilterName(name: string): boolean {
  return FIELDS.has(name) || isTimeName(name) || isPropertyName(name) || /^(?:context|traits)\./.test(name);
}

/**
 * Returns the name in the API of what a person typed: `Organization` is `groupId`, `plan` is `properties.plan`, and
 * `Organization: plan` is `organization.properties.plan`.
 */
export function nameOf(text: string): string {
  const trimmed = text.trim();
  const name = NAME_OF_LABEL.get(trimmed);
  if (name !== undefined) return name;
  if (trimmed === '' || isFilterName(trimmed)) return trimmed;
  const [, label, property = trimmed] = OWNER_LABEL.exec(trimmed) ?? [];
  return label === undefined ? `properties.${property}` : `${label.toLowerCase()}.properties.${property}`;
}

/** Returns a name of the API as a person reads it, of which {@link nameOf} is the reverse. */
export function labelOfName(name: string): string {
  const label = FIELDS.get(name) ?? TIME_LABELS.get(name);
  if (label !== undefined) return label;
  const [, owner, property] = OWNER_PROPERTY.exec(name) ?? [];
  const short = owner === undefined ? name.replace(/^properties\./, '') : `${OWNERS[owner as Owner]}: ${property}`;
  return nameOf(short) === name ? short : name;
}

/** Returns the items of a list in the API, in which `\,` is a comma and `\\` a backslash. */
export function splitList(list: string): string[] {
  if (list === '') return [];
  const items = [''];
  for (const [token] of list.matchAll(/\\[\\,]|./gsu)) {
    if (token === ',') items.push('');
    else items.push(`${items.pop()}${token.length === 2 && token.startsWith('\\') ? token[1] : token}`);
  }
  return items;
}

/** Returns a list as {@link splitList} reads it. */
export function joinList(items: readonly string[]): string {
  return items.map((item) => item.replaceAll(/[\\,]/g, '\\$&')).join(',');
}

const MEASURES: Readonly<Record<string, string>> = {
  count: 'Events',
  users: 'Distinct users',
  organizations: 'Distinct organizations',
};

const STATISTICS: Readonly<Record<string, string>> = {
  sum: 'Sum',
  avg: 'Average',
  min: 'Minimum',
  max: 'Maximum',
  p50: 'Median',
  p90: '90th percentile',
  p95: '95th percentile',
  p99: '99th percentile',
};

/** The measures that count, and those of a number property, each with its label. */
export const COUNTS = Object.entries(MEASURES);
export const STATISTICS_OF_PROPERTY = Object.entries(STATISTICS);

/** Splits `sum:properties.amount` into the statistic and the property; the property of a count is `undefined`. */
export function parseMeasure(measure: string): { readonly kind: string; readonly property: string | undefined } {
  const [, kind = measure, property] = /^([^:]*):(.*)$/s.exec(measure) ?? [];
  return { kind, property };
}

/** Returns a measure of the API as a person reads it. */
export function labelOfMeasure(measure: string): string {
  const { kind, property } = parseMeasure(measure);
  if (property === undefined) return MEASURES[kind] ?? measure;
  return `${STATISTICS[kind] ?? kind} of ${labelOfName(property)}`;
}

/** Whether values of several groups add up to a height that means something. */
export function isStackable(measure: string): boolean {
  return ['count', 'users', 'organizations', 'sum'].includes(parseMeasure(measure).kind);
}
