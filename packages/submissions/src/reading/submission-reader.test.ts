import { invalidRequest, Problem } from '@sluice/shared/http/problem';
import { EVENT_IDENTIFIERS } from '@sluice/shared/rows/event-identifiers';
import { expect, test } from 'vitest';
import { encodeJson } from './json-object.ts';
import { NO_PAUSE } from './pause.ts';
import { submissionSchemas } from './submission.ts';
import { SubmissionReader } from './submission-reader.ts';

const NOW = Date.UTC(2026, 2, 1);
const limits = { eventsMax: 3, propertiesMax: 4, now: () => NOW };
const schemas = submissionSchemas(limits);
const reader = new SubmissionReader({ ...limits, schemas, eventBytesMax: 4_000 });

const UUID_V7 = '018f3c5e-7b1a-7cc0-9d5e-0242ac120002';
const OLD_UUID_V7 = '00000000-0000-7000-8000-000000000000';
const UNDEFINED = 'undefined';

/** For every way in which a field can be right or wrong, a value as JSON. */
const TEXTS = [
  '"a"',
  '""',
  '"\\ud800"',
  '"😀"',
  `"${'x'.repeat(200)}"`,
  `"${'😀'.repeat(200)}"`,
  `"${'x'.repeat(513)}"`,
];
const OTHERS = ['null', '7', '-0', 'true', '[]', '{}', UNDEFINED];
const OBJECTS = [
  '{"a":-0}',
  '{"a":[0,-0.0,{"b":null}],"b":"\\n"}',
  '{"__proto__":{"a":1},"constructor":2}',
  '{"n":1e999}',
  '{"n":[-1e999]}',
  '{"\\udc00":1}',
  '{"a":{"\\udc00":1}}',
  '{"":"\\udc00"}',
  `${'{"a":'.repeat(31)}{}${'}'.repeat(31)}`,
  `${'{"a":'.repeat(32)}{}${'}'.repeat(32)}`,
  `{"a":${'['.repeat(32)}${']'.repeat(32)}}`,
];
const TIMES = [
  '"2026-03-01T12:00:00.5+01:00"',
  '"2026-03-02"',
  '"2026-03-03"',
  '"1999-12-31"',
  '"2026-02-30"',
  '"now"',
];
const UUIDS = [UUID_V7, UUID_V7.toUpperCase(), OLD_UUID_V7, '018f3c5e-7b1a-9cc0-9d5e-0242ac120002', 'x'].map(
  (uuid) => `"${uuid}"`,
);
const EVENT_FIELDS = {
  event: [...TEXTS, ...OTHERS],
  type: ['"track"', '"page"', ...OTHERS],
  uuid: [...UUIDS, ...OTHERS],
  timestamp: [...TIMES, ...OTHERS],
  ...Object.fromEntries(EVENT_IDENTIFIERS.map(({ field }) => [field, [...TEXTS, ...OTHERS]])),
  properties: [...OBJECTS, ...OTHERS, '"{}"'],
  context: [...OBJECTS, ...OTHERS],
  traits: [...OBJECTS, ...OTHERS],
  colour: ['1', 'null'],
};

function json(fields: Readonly<Record<string, string>>): string {
  const members = Object.entries(fields).filter(([, value]) => value !== UNDEFINED);
  return `{${members.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(',')}}`;
}

function* events(): Generator<string> {
  const full = { event: '"e"', type: '"track"', uuid: `"${UUID_V7}"`, timestamp: '"2026-03-01"', context: '{"c":-0}' };
  for (const [name, values] of Object.entries(EVENT_FIELDS)) {
    for (const value of values) yield* [json({ event: '"e"', [name]: value }), json({ ...full, [name]: value })];
  }
  yield json({ event: '"e"', uuid: `"${OLD_UUID_V7}"`, timestamp: '"2026-03-01"' });
  yield '{"event":"e","__proto__":{}}';
  yield* OTHERS.filter((value) => value !== UNDEFINED);
}

function* bodies(idName: string): Generator<string> {
  const id = { [idName]: '"id"' };
  for (const value of [...TEXTS, ...OTHERS]) {
    yield json({ [idName]: value });
    yield json({ ...id, foreignUserId: value });
    yield json({ ...id, events: value });
  }
  for (const value of [...OBJECTS, ...OTHERS, '"{}"']) yield json({ ...id, properties: value });
  for (const event of events()) yield json({ ...id, events: `[{"event":"first"},${event}]` });
  yield json({ ...id, events: `[${Array(3).fill('{"event":"e"}')}]` });
  yield json({ ...id, events: `[${Array(4).fill('{"event":"e"}')}]` });
  yield json({ ...id, colour: '1' });
  yield '{"foreignUserGroupId":"a","foreignId":"a"}';
  yield '{"foreignUserGroupId":"a","foreignId":"a","__proto__":{}}';
  yield* OTHERS.filter((value) => value !== UNDEFINED);
}

/** What the schema makes of a body, in the form that the reader returns. */
function expected(route: 'userGroup' | 'user', body: unknown): unknown {
  const result = schemas[route].safeParse(body);
  if (!result.success) return errorsOf(invalidRequest(result.error.issues));
  const { events, properties, ...ids } = result.data;
  const identifiers =
    'foreignId' in ids
      ? { subject: 'user', userId: ids.foreignId, groupId: undefined }
      : { subject: 'organization', userId: ids.foreignUserId, groupId: ids.foreignUserGroupId };
  const member = ([name, value]: [string, unknown]) => ({ name, json: value === null ? undefined : encodeJson(value) });
  const members = properties && Object.entries(properties).map(member);
  return { ...identifiers, events: events ?? [], properties: members };
}

function errorsOf({ errors = [], detail }: { errors?: Problem['errors']; detail?: string }): unknown {
  const sorted = errors.map(({ path, code, message }) => `${path} ${code} ${message}`).sort();
  return { detail, errors: sorted };
}

async function read(route: 'userGroup' | 'user', body: string): Promise<unknown> {
  try {
    return await reader.read(Buffer.from(body), route, [], () => undefined);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return error.code === 'invalid_request' ? errorsOf(error) : error.code;
  }
}

test.each([
  ['userGroup', 'foreignUserGroupId'],
  ['user', 'foreignId'],
] as const)('the reader accepts, refuses and returns for %s what the schema does', async (route, idName) => {
  let valid = 0;
  let count = 0;
  for (const body of bodies(idName)) {
    const right = expected(route, JSON.parse(body));
    for (const text of [body, ` ${body.replaceAll(/[[\]{}:,](?=[^"]*(?:"[^"]*"[^"]*)*$)/g, ' $& ')}\n`]) {
      expect(await read(route, text), text).toEqual(right);
    }
    count += 1;
    valid += 'errors' in (right as object) ? 0 : 1;
  }
  expect(valid).toBeGreaterThan(50);
  expect(count - valid).toBeGreaterThan(50);
});

test.each([
  '{"foreignId":"a"',
  '{"foreignId":"a"}}',
  '{"foreignId" "a"}',
  '{"foreignId":"a",}',
  '{,}',
  '{"foreignId":"a","events":[{"event":"e"},]}',
  '{"foreignId":"a","events":[{"event":"e"} {"event":"e"}]}',
  '{"foreignId":"a","events":[{"event":"e","properties":{"a":[1}]}]}',
  '{"foreignId":"a","events":[{"event":"e"]}',
  '{"foreignId":"a","events":[}',
  '{"foreignId":"a","properties":{"a":1,"b"}}',
  '{"foreignId":"a","properties":{"a":01}}',
  '{"foreignId":"a\n"}',
  '{"foreignId":"\\x"}',
  '{"foreignId":nul}',
  '{"foreignId":"a","x":}',
  '[1',
  '"a',
])('a body that is not JSON is refused: %j', async (body) => {
  expect(() => JSON.parse(body)).toThrow();
  expect(await read('user', body)).toBe('malformed_json');
});

test('the last of several fields with one name counts', async () => {
  const body =
    '{"foreignId":7,"events":[{}],"properties":{"a":1,"a":2,"\\u0061":3},"events":[{"event":"e"}],"foreignId":"b"}';
  expect(await read('user', body)).toMatchObject({
    userId: 'b',
    events: [{ event: 'e' }],
    properties: [{ name: 'a', json: '3' }],
  });
  expect(await read('user', '{"foreignId":"a","events":[{}],"events":null}')).toMatchObject({ events: [] });
});

test('a part that is too large is named; white space between tokens does not count', async () => {
  const large = `{"event":"e","properties":{"p":"${'x'.repeat(4_000)}"}}`;
  const body = `{"foreignId":"a","events":[{"event":"e"},${large},{"event" : ${' '.repeat(9_000)} "e"}]}`;
  expect(await read('user', body)).toBe('body_too_large');
  expect(await read('user', body.replace('x'.repeat(4_000), 'x'.repeat(3_900)))).toMatchObject({ userId: 'a' });
});

test('a long number keeps its digits, in events and in properties', async () => {
  const body =
    '{"foreignId":"a","events":[{"event":"e","properties":{"id":1729384756102938475}}],"properties":{"n":[0.12345678901234567890]}}';
  expect(await read('user', body)).toMatchObject({
    events: [{ properties: '{"id":1729384756102938475}' }],
    properties: [{ name: 'n', json: '[0.12345678901234567890]' }],
  });
  expect(await read('user', '{"foreignId":12345678901234567890}')).toMatchObject({
    errors: [expect.stringContaining('foreignId')],
  });
  expect(await read('user', '{"foreignId":"a","properties":12345678901234567890}')).toMatchObject({
    errors: [expect.stringContaining('properties')],
  });
});

test('a name with an escape is its own, whatever names came before it', async () => {
  // After the first of these names, JSON.parse of Node.js 26 takes the others for it (nodejs/node#63785).
  for (const [written, name] of [
    ['\\\\', '\\'],
    ['\\n', '\n'],
    ['\\u0041', 'A'],
  ] as const) {
    const object = `{"q":0,"${written}":1}`;
    const body = `{"foreignId":"a","events":[{"event":"e","properties":${object}}],"properties":{"p":${object}}}`;
    const json = JSON.stringify({ q: 0, [name]: 1 });
    expect(await read('user', body)).toMatchObject({
      events: [{ properties: json }],
      properties: [{ name: 'p', json }],
    });
  }
});

test('however a body is made, there is a pause before each of its parts', async () => {
  const bodies: Record<string, string> = {
    'events that are none': `{"events":[${Array(2_000).fill('1').join()}]}`,
    'unknown fields': `{${Array.from({ length: 2_000 }, (_, index) => `"${index}":1`).join()}}`,
    properties: `{"properties":{${Array.from({ length: 2_000 }, (_, index) => `"${index}":1`).join()}}}`,
  };
  for (const [name, body] of Object.entries(bodies)) {
    let pauses = 0;
    const pause = () => {
      pauses += 1;
      return undefined;
    };
    await expect(reader.read(Buffer.from(body), 'user', [], pause)).rejects.toThrow(Problem);
    expect(pauses, name).toBeGreaterThanOrEqual(2_000);
  }
});

test('an error names the beginning of a name that is long', async () => {
  const name = '\\u0001'.repeat(600);
  const problem = (body: string) => reader.read(Buffer.from(body), 'user', [], NO_PAUSE).catch((error) => error);
  for (const body of [`{"foreignId":"a","${name}":1}`, `{"foreignId":"a","events":[{"event":"e","${name}":1}]}`]) {
    const { errors } = await problem(body);
    expect(errors).toMatchObject([{ code: 'unknown_field' }]);
    expect(errors[0].path.length).toBeLessThan(300);
  }
});
