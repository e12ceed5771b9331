import { expect, test } from 'vitest';
import { submissionSchemas } from './submission.ts';

const NOW = Date.UTC(2026, 2, 1);
const { quick, userGroup, user } = submissionSchemas({ eventsMax: 3, now: () => NOW });

const UUID_V7 = '018f3c5e-7b1a-7cc0-9d5e-0242ac120002';
const OLD_UUID_V7 = '00000000-0000-7000-8000-000000000000';
const UNDEFINED = 'undefined';

/** A value for every way in which a field can be right or wrong, as JSON. */
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
  anonymousId: [...TEXTS, ...OTHERS],
  instanceId: [...TEXTS, ...OTHERS],
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

test.each([
  ['userGroup', quick.userGroup, userGroup, 'foreignUserGroupId'],
  ['user', quick.user, user, 'foreignId'],
] as const)('the quick parser of %s takes, refuses and gives what the schema does', (_name, parser, schema, idName) => {
  let valid = 0;
  let count = 0;
  for (const body of bodies(idName)) {
    const mine = parser.safeParse(JSON.parse(body));
    const right = schema.safeParse(JSON.parse(body));
    expect(mine.success, body).toBe(right.success);
    if (right.success) expect(mine.data, body).toEqual(right.data);
    else expect(mine.error?.issues, body).toEqual(right.error.issues);
    count += 1;
    valid += right.success ? 1 : 0;
  }
  expect(valid).toBeGreaterThan(50);
  expect(count - valid).toBeGreaterThan(50);
});
