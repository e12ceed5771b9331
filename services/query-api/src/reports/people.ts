import type { InputError } from '@sluice/shared/http/problem';
import type { QueryParameters } from '@sluice/shared/http/query-string';
import type { FastifyReply } from 'fastify';
import { z } from 'zod';
import { encodeCursor, LIMIT_DEFAULT, limitSchema, nextCursorSchema, readCursor } from '../http/http.ts';
import {
  cursorParameter,
  EVENT_COLUMNS,
  limitParameter,
  type PersonsRead,
  type ReadEvents,
} from '../records/records.ts';
import type { Row } from '../store/store.ts';
import type { GroupKey } from './group-key.ts';
import { type ReportSelection, reportEnd, reportEndSchemas } from './report-selection.ts';

// The people behind a number of a report are found by the report's own query, which lists them in place of counting
// them. So each page costs as much as the report.

/** The parameters of a page, besides those of the number. */
export const pageParameters = { limit: limitParameter, cursor: cursorParameter('parameters') } as const;

/** A page of the people behind a number, in the order of the bytes of their identifiers. */
export interface PeoplePage {
  readonly limit: number;
  /** Who was last on the page before; `''` on the first page. */
  readonly afterId: string;
  /** What a cursor belongs to. */
  readonly list: unknown;
}

const sortKey = z.tuple([z.string(), z.int()]);

/**
 * Returns the page that is requested, and the selection of its report: the pages of a range without an end have the end of
 * the first one. Adds an error of the cursor, after which neither must be used.
 *
 * @param name of the route: a cursor belongs to it, to the workspace and to all other parameters
 */
export function pageOf(
  { name, workspace, query }: { readonly name: string; readonly workspace: string; readonly query: QueryParameters },
  { limit = LIMIT_DEFAULT, cursor }: { readonly limit?: number | undefined; readonly cursor?: string | undefined },
  selection: ReportSelection,
  errors: InputError[],
): { readonly page: PeoplePage; readonly selection: ReportSelection } {
  const others = Object.entries(query).filter(([parameter]) => !Object.hasOwn(pageParameters, parameter));
  const list = [name, workspace, others.map((parameter) => JSON.stringify(parameter)).sort()];
  const place = readCursor(cursor, { list, sortKey, repeat: 'parameters' }, errors);
  const [afterId, firstEndMs] = place ?? ['', selection.endMs];
  // A cursor may be made up.
  const endMs = Math.max(selection.startMs, Math.min(firstEndMs, selection.endMs));
  return { page: { limit, afterId, list }, selection: { ...selection, endMs } };
}

/**
 * Sends a page.
 *
 * @param rows at most one more than the page has, each with the identifier first; `undefined` when the query ran out of
 *   its time: then nobody is known
 * @param recordOf returns what is known of a person besides the identifier
 */
export async function sendPeople<PersonRow extends readonly [id: string, ...unknown[]]>(
  reply: FastifyReply,
  { limit, list }: PeoplePage,
  selection: ReportSelection,
  rows: readonly Row[] | undefined,
  recordOf: (row: PersonRow) => object,
): Promise<FastifyReply> {
  const found = (rows ?? []) as unknown as readonly PersonRow[];
  const shown = found.slice(0, limit);
  const last = shown.at(-1);
  return await reply.send({
    limit,
    results: shown.map((row) => ({ id: row[0], ...recordOf(row) })),
    nextCursor: last && found.length > limit ? encodeCursor(list, [last[0], selection.endMs]) : null,
    ...reportEnd(selection, rows !== undefined),
  });
}

/** Returns the schema of a page of people. */
export function peopleSchema(person: z.ZodType) {
  return z.object({
    limit: limitSchema,
    results: z.array(person).meta({
      description: 'In the order of the bytes of their identifiers; empty when `complete` is `false`.',
    }),
    nextCursor: nextCursorSchema,
    ...reportEndSchemas(),
  });
}

// Whom a report counts, and the order of their events.

/** Who goes through a funnel, or comes back. */
const PERSONS = ['user', 'organization'] as const;

export type Person = (typeof PERSONS)[number];

/** @param what they do */
export function personParameter(what: string) {
  return z.enum(PERSONS, `must be one of ${PERSONS.join(', ')}`).meta({
    default: 'user',
    description: `${what}: users (\`userId\`) or organizations (\`groupId\`). Events without it do not count.`,
  });
}

/** Returns the column with the identifier of the persons. */
export function personColumn({ by }: { readonly by: Person }): string {
  return EVENT_COLUMNS[by === 'user' ? 'userId' : 'groupId'].column;
}

/**
 * Returns what a report needs of the persons of events, besides conditions on them; undefined: nothing.
 *
 * @param areNamed whether it needs the users whom it is by themselves, and does not only tell them apart
 */
export function personsRead(
  { by, areNamed = false }: { readonly by?: Person | undefined; readonly areNamed?: boolean },
  keys: readonly GroupKey[],
): PersonsRead | undefined {
  const isKey = keys.some((key) => ('field' in key ? key.field === 'userId' : key.owner === 'user'));
  if (isKey) return 'named';
  if (by !== 'user') return undefined;
  return areNamed ? 'named' : 'told apart';
}

/** Returns SQL that tells apart the persons that a report is by. */
export function personSql(request: { readonly by: Person }, { person }: Pick<ReadEvents<unknown>, 'person'>) {
  if (request.by === 'user') return person;
  const key = personColumn(request);
  return { key, exists: `${key} != ''` };
}

/** The earliest time that can be stored, the beginning of 1900, is this many milliseconds before 1970. */
export const MS_BEFORE_1970 = '2208988800000';

/** The bits of a place behind the time: 53 of microseconds, 128 of a uuid, 8 that are free. */
export const PLACE_TIME_SHIFT = 189;

/** The place of an event among those of a person, as one number: by its time, when it was received, and its uuid. */
export const EVENT_PLACE = `bitShiftLeft(toUInt256(toUnixTimestamp64Milli(timestamp) + ${MS_BEFORE_1970}), ${PLACE_TIME_SHIFT})
      + bitShiftLeft(toUInt256(toUnixTimestamp64Micro(received_at)), 136)
      + bitShiftLeft(toUInt256(toUInt128(uuid)), 8)`;
