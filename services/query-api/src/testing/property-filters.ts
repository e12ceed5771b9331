import { randomUUID } from 'node:crypto';
import fc from '@sluice/shared/testing/fast-check';
import { expect } from 'vitest';
import type { DocumentField } from '../records/events/event-columns.ts';
import type { Condition } from '../records/filters/operators.ts';
import { searchedTexts } from '../records/filters/property-condition.ts';
import { textOf } from './conditions.ts';
import { anEvent, type QueryService } from './query-service.ts';
import { meets } from './reference.ts';

export const key = fc.oneof(
  fc.constantFrom(
    'a',
    'b',
    'a.b',
    'b.a',
    '',
    '.',
    '__proto__',
    'constructor',
    '0',
    '1',
    'length',
    'a"b',
    "a'b",
    '\\',
    'a\0',
    ',1234567890123456789',
    'ä',
    '\u{1f600}',
    '\u2028',
  ),
  fc.string({ unit: 'binary', maxLength: 4 }).filter((name) => name.isWellFormed()),
);
export const string = fc.oneof(
  fc.constantFrom(
    '',
    'x',
    '1',
    'true',
    'null',
    '{}',
    '"x"',
    '\ud800',
    '\udfff\ud800',
    '\\ud800',
    '\0',
    '\0' + 'd800',
    ',12345678901234567890',
    'a\u0001\u001f\u007f/\b\f\n\r\t"\\',
    '\u{10ffff}\ufffd',
  ),
  fc.string({ unit: 'binary', maxLength: 8 }),
);
const number = fc.oneof(
  fc.constantFrom(
    0,
    -0,
    1,
    -1,
    0.1,
    4.35,
    5e-324,
    1.7976931348623157e308,
    -1.7976931348623157e308,
    2.2250738585072014e-308,
    1e21,
    1e20,
    123456789012345680000,
    999999999999999900000,
    2 ** 53,
    2 ** 63,
    -(2 ** 63),
    2 ** 64,
    -(2 ** 64),
    1e-6,
    1e-7,
    0.000001234567890123456,
  ),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.maxSafeInteger(),
);
export const value: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constant(null),
    fc.boolean(),
    string,
    number,
    tie('array'),
    tie('object'),
  ),
  array: fc.array(tie('value'), { maxLength: 3 }),
  object: fc
    .uniqueArray(fc.tuple(key, tie('value')), { maxLength: 4, selector: ([name]) => name })
    .map(Object.fromEntries),
})).value;
export const document = fc
  .uniqueArray(fc.tuple(key, value), { maxLength: 5, selector: ([name]) => name })
  .map((entries): Record<string, unknown> => Object.fromEntries(entries));

/** Every place in a document, with the name that finds it: keys joined by dots. An array is also found by its items. */
export function* places(node: unknown, path: readonly string[] = []): Generator<{ name: string; value: unknown }> {
  if (path.length > 0) yield { name: path.join('.'), value: node };
  if (typeof node !== 'object' || node === null) return;
  if (path.length > 0 && Array.isArray(node)) for (const item of node) yield { name: path.join('.'), value: item };
  for (const [name, member] of Object.entries(node)) yield* places(member, [...path, name]);
}

/** JSON as ingest-api writes it: a negative zero keeps its sign. */
function encode(node: unknown): string {
  if (Object.is(node, -0)) return '-0';
  if (Array.isArray(node)) return `[${node.map(encode).join(',')}]`;
  if (typeof node !== 'object' || node === null) return JSON.stringify(node);
  return `{${Object.entries(node)
    .map(([name, member]) => `${JSON.stringify(name)}:${encode(member)}`)
    .join(',')}}`;
}

/** The uuids that a request finds, sorted. */
export async function find(query: QueryService, parameters: [string, string][]): Promise<unknown[]> {
  const { status, body } = await query.get(`/events?limit=1000&total=none&${new URLSearchParams(parameters)}`);
  expect(status, JSON.stringify(body)).toBe(200);
  return body.results.map(({ uuid }) => uuid).sort();
}

export interface Filter {
  readonly name: string;
  readonly condition: Condition;
}

export function equals(name: string, value: string): Filter {
  return { name, condition: { operator: 'eq', value } };
}

/** Stores documents as one of the objects of events, and compares what filters find with the reference. */
export async function expectSameAsReference(
  query: QueryService,
  documents: readonly unknown[],
  filters: readonly Filter[],
  column: DocumentField = 'properties',
): Promise<void> {
  await query.clickHouse.command({ query: 'TRUNCATE TABLE events' });
  const stored = documents.map((document) => ({ document, json: encode(document), uuid: randomUUID() }));
  await query.store(
    'a',
    stored.map(({ json, uuid }) => anEvent({ uuid, [column]: json })),
  );
  for (const { name, condition } of filters) {
    const expected = stored.filter(({ document }) => meets(document, name, condition));
    const parameter = [`${column}.${name}[${condition.operator}]`, textOf(condition, true)] satisfies [string, string];
    expect(await find(query, [parameter]), parameter.join('=')).toEqual(expected.map(({ uuid }) => uuid).sort());
    const texts = searchedTexts({ document: column, name, condition });
    const without = expected.filter(({ json }) => texts && !texts.some((text) => json.includes(text)));
    expect(without, `${parameter.join('=')} in ${texts}`).toEqual([]);
  }
}

/** Whether a request can have the filter: Unicode text, no empty value, few dots. */
export function isValid({ name, condition }: Filter): boolean {
  const text = textOf(condition, true);
  return name.isWellFormed() && text.isWellFormed() && text !== '' && name.split('.').length <= 7;
}
