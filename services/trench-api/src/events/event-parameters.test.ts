import { Problem } from '@sluice/shared/http/problem';
import { parseQueryString } from '@sluice/shared/http/query-string';
import { expect, test } from 'vitest';
import { EVENT_PARAMETERS, queryParameters } from './event-parameters.ts';

function parametersOf(query: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(queryParameters(parseQueryString(String(new URLSearchParams(query)))));
}

/** What every read of Trench's sends. */
const ALWAYS = { identity: 'raw' };

test('there are fifteen parameters, and a page has 1,000 events unless limit says otherwise', () => {
  expect(new Set(EVENT_PARAMETERS).size).toBe(15);
  expect(parametersOf({})).toEqual({ ...ALWAYS, limit: '1000' });
  expect(parametersOf({ limit: '5' })).toEqual({ ...ALWAYS, limit: '5' });
});

test('empty and unknown parameters do nothing', () => {
  expect(parametersOf({ event: '', colour: 'red', cursor: 'x', total: 'none' })).toEqual({ ...ALWAYS, limit: '1000' });
});

test('each member of an object is a filter of equality, whatever its name', () => {
  const properties = JSON.stringify({ plan: 'pro', 'a[prefix]': 'b', n: 5, none: null, empty: '', list: [1] });
  expect(parametersOf({ properties, traits: '{"a.b":true}', context: '{"n":1729384756102938475}' })).toEqual({
    ...ALWAYS,
    ...{ limit: '1000', 'properties.plan[eq]': 'pro', 'properties.a[prefix][eq]': 'b', 'properties.n[eq]': '5' },
    ...{ 'properties.none[eq]': 'null', 'properties.empty[eq]': '', 'properties.list[eq]': '[1]' },
    ...{ 'traits.a.b[eq]': 'true', 'context.n[eq]': '1729384756102938475' },
  });
});

test("query-api's own filters are passed on as they are", () => {
  const filters = {
    'properties.plan[ne]': 'pro',
    'traits.name': '',
    'organization.properties.plan': 'pro',
    'user.firstSeenAt[gte]': '2026-03-01',
    segment: 'paying',
    'segment[ne]': 'staff',
  };
  expect(parametersOf({ ...filters, user: 'jane', segments: 'x' })).toEqual({ ...ALWAYS, limit: '1000', ...filters });
});

test("the order may be by Trench's columns", () => {
  expect(parametersOf({ orderByField: 'parsed_at', orderByDirection: 'asc' })).toMatchObject({
    orderByField: 'receivedAt',
    orderByDirection: 'ASC',
  });
  expect(parametersOf({ orderByField: 'user_id' })).toMatchObject({ orderByField: 'userId' });
  expect(parametersOf({ orderByField: 'event' })).toMatchObject({ orderByField: 'event' });
});

test('a date alone at the end is its beginning', () => {
  expect(parametersOf({ startDate: '2026-03-01', endDate: '2026-03-02' })).toMatchObject({
    startDate: '2026-03-01',
    endDate: '2026-03-02T00:00:00.000Z',
  });
});

test.each(['properties=7', 'traits={', 'context=[]', 'event=a&event=b'])('%s is refused', (query) => {
  expect(() => queryParameters(parseQueryString(query))).toThrow(Problem);
});
