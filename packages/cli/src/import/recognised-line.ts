import { readJsonObject } from './format.ts';
import type { FormatName } from './formats.ts';

type Line = Readonly<Record<string, unknown>>;

/** What {@link recogniseLine} found: a format, and what a line of it is. */
export interface RecognisedLine {
  /** `undefined`: no format of an import has such lines. */
  readonly format: FormatName | undefined;
  /** A phrase for people. */
  readonly what: string;
}

interface Signature extends RecognisedLine {
  /** True for no line of another format, and perhaps not for each of its own. */
  matches(line: Line): boolean;
}

const CALL_TYPES: readonly unknown[] = ['track', 'identify', 'page', 'screen', 'group', 'alias'];

const ENTITY_IDS = ['foreignId', 'foreignUserGroupId'];

const SIGNATURES: readonly Signature[] = [
  {
    format: 'native',
    what: 'the body of a native route',
    matches: (line) => hasSome(line, ENTITY_IDS) && !hasSome(line, ['firstSeenAt']),
  },
  {
    format: 'export',
    what: 'a line of an export of Sluice',
    matches: (line) =>
      hasAll(line, ['uuid', 'type', 'event', 'timestamp', 'receivedAt']) ||
      (hasSome(line, ENTITY_IDS) && hasSome(line, ['firstSeenAt'])) ||
      (hasAll(line, ['complete']) && hasSome(line, ['events', 'users', 'organizations'])),
  },
  {
    format: 'posthog',
    what: 'an event of an export of PostHog',
    matches: (line) => hasAll(line, ['uuid', 'event', 'distinct_id']),
  },
  {
    format: 'trench',
    what: "a row of Trench's table of events",
    matches: (line) =>
      hasAll(line, ['uuid', 'event', 'timestamp']) && hasSome(line, ['parsed_at', 'user_id', 'instance_id']),
  },
  {
    format: 'segment',
    what: 'a call that Segment or RudderStack archived',
    matches: (line) =>
      CALL_TYPES.includes(line['type']) &&
      !hasSome(line, ['uuid']) &&
      hasSome(line, ['messageId', 'originalTimestamp', 'receivedAt']),
  },
];

/** Returns what a line is without doubt; `undefined` for one that may be anything. */
export function recogniseLine(bytes: Buffer): RecognisedLine | undefined {
  const start = bytes.toString('latin1', 0, 8);
  if (start.startsWith('PAR1')) return { format: undefined, what: 'the beginning of a Parquet file' };
  if (/^"?uuid"?,/.test(start)) return { format: undefined, what: 'the header of a CSV file' };
  const content = readJsonObject(bytes);
  if (content.kind !== 'object') return undefined;
  const [found, ...others] = SIGNATURES.filter(({ matches }) => matches(content.value));
  return others.length === 0 ? found : undefined;
}

function hasAll(line: Line, names: readonly string[]): boolean {
  return names.every((name) => Object.hasOwn(line, name));
}

function hasSome(line: Line, names: readonly string[]): boolean {
  return names.some((name) => Object.hasOwn(line, name));
}
