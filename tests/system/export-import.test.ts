import { readFile, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { eventually } from '@sluice/shared/testing/eventually';
import { parseJson } from '@sluice/shared/text/json';
import { beforeAll, expect, test } from 'vitest';
import { runExporter, runImporter } from '../kit/importer.ts';
import type { EntityRecord, EventRecord } from '../kit/records.ts';
import { type Tenant, takeTenant } from '../kit/shared-pipeline.ts';

const HOSTILE = 'a "quoted"\\\n\t, ä🙂 \u2028</script>';
const BIG = '{"big":12345678901234567890,"small":1e-7,"lone":"\\ud800","__proto__":{"x":[null,true]}}';

let count = 0;

/** Members that every call and event of the test has, and a time of its own. */
function times(): { timestamp: string } {
  count += 1;
  return { timestamp: new Date(Date.UTC(2026, 0, 1) + count * 61_001).toISOString() };
}

const CALLS: readonly Readonly<Record<string, unknown>>[] = [
  { type: 'identify', userId: 'jane', traits: { plan: 'pro', name: HOSTILE }, context: { ip: '::1' } },
  { type: 'identify', userId: 'joe', context: { traits: { plan: 'free' } } },
  { type: 'identify', userId: 'joe', traits: { plan: null, seats: 3 } },
  { type: 'group', userId: 'jane', groupId: 'acme', traits: { size: 12 } },
  { type: 'group', groupId: 'acme', traits: { size: 13 }, context: { groupId: 'other' } },
  { type: 'page', userId: 'jane' },
  { type: 'page', userId: 'jane', name: 'Home', category: 'Docs' },
  { type: 'page', userId: 'jane', name: 'page' },
  { type: 'page', anonymousId: 'a-1', name: 'Home', properties: { name: 'Other', path: '/' } },
  { type: 'screen', anonymousId: 'a-1', name: HOSTILE },
  { type: 'alias', userId: 'jane', previousId: 'a-1' },
  { type: 'alias', previousId: 'a-2' },
  { type: 'track', event: HOSTILE, userId: HOSTILE, messageId: 'no-uuid', traits: { once: true } },
  { type: 'track', event: 'x', userId: 'jane', context: { groupId: 'globex' }, instanceId: 'i-1' },
];

/** A submission's event does not get the organization that its context names. */
const EVENTS: readonly Readonly<Record<string, unknown>>[] = [
  { event: 'a', context: { groupId: 'not-mine' }, anonymousId: 'b', traits: { t: 1 } },
  { event: 'a', uuid: '0190A0A0-0000-7000-8000-000000000001' },
  { event: HOSTILE, instanceId: HOSTILE },
];

let pipeline: Tenant;

beforeAll(async () => {
  pipeline = await takeTenant('exports');
  const batch = CALLS.map((call) => ({ ...call, ...times() }));
  const calls = await pipeline.submit({ batch }, { path: '/v1/batch' });
  expect([calls.status, calls.body]).toEqual([200, { success: true }]);
  const events = EVENTS.map((event) => ({ ...event, ...times() }));
  const raw = `{"event":"raw","properties":${BIG},"timestamp":"${times().timestamp}"}`;
  const body = JSON.stringify({ foreignId: 'jane', events }).replace('"events":[', `"events":[${raw},`);
  expect((await pipeline.submit(body, { path: '/v1/public/users' })).status).toBe(202);
  await pipeline.submit({ foreignUserGroupId: 'acme', events: [{ event: 'of a group', ...times() }] });
  await pipeline.settled(CALLS.length + EVENTS.length + 2);
  await pipeline.drained();
});

/** The records of a workspace, without the time of receipt. */
async function recordsOf(key: string): Promise<Omit<EventRecord, 'receivedAt'>[]> {
  const response = await fetch(
    `${pipeline.services['query-api'].url}/events?limit=1000&orderByDirection=ASC&identity=raw`,
    {
      headers: { authorization: `Bearer ${key}` },
    },
  );
  const { results } = parseJson(await response.text()) as { results: EventRecord[] };
  return results.map(({ receivedAt: _, ...record }) => record);
}

async function propertiesOf(key: string, path: string): Promise<unknown> {
  return (await pipeline.get<EntityRecord>(path, key)).body.properties;
}

test('what npm run export writes, npm run import makes the same events and the same properties of', async () => {
  await using folder = await makeTempDir();
  const file = join(folder.path, 'events.ndjson');
  const refused = join(folder.path, 'refused.txt');
  const url = pipeline.services['query-api'].url;
  const exported = await runExporter(['--url', url, '--out', file, 'startDate=2026-01-01'], pipeline.key);
  expect(exported.code, exported.output).toBe(0);
  const total = CALLS.length + EVENTS.length + 2;
  expect(exported.output).toContain(`${file} is complete: ${total} events`);
  const text = await readFile(file, 'utf8');
  expect(text.endsWith(`\n{"complete":true,"events":${total}}\n`)).toBe(true);

  const key = await pipeline.addKey('copy');
  const target = ['--format', 'export', '--url', pipeline.services['ingest-api'].url, '--refused', refused];
  const imported = await runImporter([...target, file], key);
  expect(imported.code, imported.output).toBe(0);
  await pipeline.settled(total, key);
  await pipeline.drained();
  expect(await recordsOf(key)).toEqual(await recordsOf(pipeline.key));
  for (const path of ['/users/jane', '/users/joe', '/organizations/acme']) {
    expect(await propertiesOf(key, path)).toEqual(await propertiesOf(pipeline.key, path));
  }

  const again = await runImporter([...target, file], key);
  expect(again.code, again.output).toBe(0);
  await pipeline.drained();
  await pipeline.settled(total, key);
});

test('users and organizations are exported with the properties that came without an event, and imported', async () => {
  const key = await pipeline.addKey('entities');
  const many = Object.fromEntries(Array.from({ length: 600 }, (_, index) => [`p${index}`, index]));
  const raw = `{"foreignId":"without an event","properties":${BIG}}`;
  const sent: [path: string, body: string | object][] = [
    ['/v1/public/users', raw],
    ['/v1/public/users', { foreignId: 'many', properties: many }],
    ['/v1/public/users', { foreignId: HOSTILE }],
    ['/v1/public/userGroups', { foreignUserGroupId: 'acme', properties: { plan: HOSTILE } }],
    // More than one page.
    ...Array.from({ length: 120 }, (_, index): [string, object] => [
      '/v1/public/users',
      { foreignId: `u${index}`, properties: { index } },
    ]),
  ];
  for (const [path, body] of sent) {
    expect((await pipeline.submit(body, { path, key })).status).toBe(202);
  }
  await pipeline.drained();
  await using folder = await makeTempDir();
  const url = pipeline.services['query-api'].url;
  const copy = await pipeline.addKey('entities-copy');
  const target = ['--url', pipeline.services['ingest-api'].url, '--refused', join(folder.path, 'refused.txt')];
  for (const [subject, lines] of [
    ['users', 124],
    ['organizations', 1],
  ] as const) {
    const file = join(folder.path, `${subject}.ndjson`);
    const exported = await runExporter([subject, '--url', url, '--out', file], key);
    expect([exported.code, exported.output]).toEqual([0, expect.stringContaining(`${lines} ${subject}`)]);
    expect(await readFile(file, 'utf8')).toMatch(new RegExp(`\n\\{"complete":true,"${subject}":${lines}\\}\n$`));
    const mistaken = await runImporter([...target, file], copy);
    expect([mistaken.code, mistaken.output]).toEqual([2, expect.stringContaining('--format export')]);
    const imported = await runImporter([...target, '--format', 'export', file], copy);
    expect([imported.code, imported.output]).toEqual([0, expect.stringContaining(`${lines} records were accepted`)]);
  }
  await pipeline.drained();
  const entitiesOf = async (path: string, withKey: string) => {
    const response = await fetch(`${url}${path}?limit=1000`, { headers: { authorization: `Bearer ${withKey}` } });
    const { results } = parseJson(await response.text()) as { results: EntityRecord[] };
    return results.map(({ firstSeenAt: _first, lastSeenAt: _last, ...record }) => record);
  };
  for (const path of ['/users', '/organizations']) {
    const expected = await entitiesOf(path, key);
    expect(expected).toHaveLength(path === '/users' ? 123 : 1);
    await eventually(() => entitiesOf(path, copy)).toEqual(expected);
  }
});

test('history that is imported again after a deletion, under a new user or none, is there', async () => {
  const key = await pipeline.addKey('renamed');
  const uuids = ['0190a0a0-0000-7000-8000-00000000000a', '0190a0a0-0000-7000-8000-00000000000b'] as const;
  const at = times();
  const submit = async (uuid: string, user: object) =>
    await pipeline.submit({ foreignUserGroupId: 'acme', ...user, events: [{ event: 'old', uuid, ...at }] }, { key });
  for (const uuid of uuids) await submit(uuid, { foreignUserId: 'jane@old.example' });
  await pipeline.settled(2, key);
  await pipeline.deleteUser('jane@old.example', key);
  await eventually(() => recordsOf(key)).toEqual([]);
  await submit(uuids[0], { foreignUserId: 'u-1' });
  await submit(uuids[1], {});
  await pipeline.drained();
  const users = async () => (await recordsOf(key)).map(({ uuid, userId }) => ({ uuid, userId }));
  await eventually(users).toEqual([
    { uuid: uuids[0], userId: 'u-1' },
    { uuid: uuids[1], userId: null },
  ]);
});

test('a file that was cut off, or lacks a line, is not imported without a word', async () => {
  await using folder = await makeTempDir();
  const file = join(folder.path, 'events.ndjson');
  const args = ['--url', pipeline.services['query-api'].url, '--out', file, 'startDate=2026-01-01', 'event=a'];
  expect((await runExporter(args, pipeline.key)).code).toBe(0);
  const text = await readFile(file, 'utf8');
  const refused = join(folder.path, 'refused.txt');
  const target = ['--format', 'export', '--url', pipeline.services['ingest-api'].url, '--refused', refused];
  const key = await pipeline.addKey('cut');

  await writeFile(file, text.slice(text.indexOf('\n') + 1));
  const shorter = await runImporter([...target, file], key);
  expect(shorter.code).toBe(1);
  expect(await readFile(refused, 'utf8')).toBe('line 2: says that 2 lines come before it, but the file has 1\n');

  await truncate(file, text.indexOf('{"complete"'));
  const cut = await runImporter([...target, file], key);
  expect(cut.code).toBe(1);
  expect(cut.output).toContain('the file was cut off');
});

test('wrong arguments and refused requests leave no file', async () => {
  await using folder = await makeTempDir();
  const file = join(folder.path, 'events.ndjson');
  const args = ['--url', pipeline.services['query-api'].url, '--out', file];
  const incomplete = await runExporter(args, pipeline.key);
  expect([incomplete.code, incomplete.output]).toEqual([2, expect.stringContaining('startDate=DATE is needed')]);
  const wrong = await runExporter([...args, 'startDate=2026-01-01', 'nothing=1'], pipeline.key);
  expect([wrong.code, wrong.output]).toEqual([1, expect.stringContaining('nothing unknown parameter')]);
  await expect(readFile(file)).rejects.toThrow('ENOENT');
  await writeFile(file, 'mine');
  const kept = await runExporter([...args, 'startDate=2026-01-01'], pipeline.key);
  expect([kept.code, kept.output]).toEqual([2, expect.stringContaining('exists already')]);
  expect(await readFile(file, 'utf8')).toBe('mine');
});
