import { randomUUID } from 'node:crypto';
import { NOWHERE, PARTITIONS, startServers } from '@sluice/cli/testing/test-servers';
import { startClickHouse } from '@sluice/local-stack/clickhouse';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { type EntityRow, MendedServer } from '@sluice/servers/compare/mended-server';
import { TEST_ACCOUNTS } from '@sluice/shared/clickhouse/testing/test-accounts';
import type { ChangeRow, EventRow } from '@sluice/shared/rows';
import { recordState } from '@sluice/storage/clickhouse/identity';
import { COLD_VOLUME_AWAY } from '@sluice/storage/protocol/dead-letter';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  compare,
  DELETED_US,
  deadLetter,
  deletion,
  engines,
  event,
  LATE,
  mend,
  NOON_US,
  nowUs,
  property,
  recorded,
  remove,
  SAME,
  seen,
  startFilled,
  storeRows,
  storeSent,
  timeOf,
  uuidOf,
} from '../kit/comparable-servers.ts';

describe('two servers', () => {
  test('are the same, however their rows came and were merged, and both record it', async () => {
    await using servers = await startFilled();
    const { a1, a2 } = servers.of;
    // Where a dead letter came from, and how often it was replayed, is of one server.
    await a2.insert('dead_letters', deadLetter('one', { offset: 7, replayed_at: '2026-03-02 00:00:00' }));
    // Only a server whose cold volume is away has this one.
    await a2.insert('dead_letters', deadLetter('cold', { reason: COLD_VOLUME_AWAY }));
    await a1.client.command({ query: 'OPTIMIZE TABLE entities FINAL' });
    // What is declared as fast, and since when, is of one server, too.
    await a1.client.command({
      query: `ALTER TABLE events UPDATE fast_set = 7, fast_1 = '"pro"' WHERE 1`,
      clickhouse_settings: { mutations_sync: '2' },
    });
    const { lines, ...outcome } = await compare(servers);
    expect(outcome).toEqual(SAME);
    expect(lines).toEqual([
      'table              month    a1  a2',
      'user_deletions     -        1   1   same',
      'events             2020     1   1   same',
      'events             2026-03  3   3   same',
      'events             2026-04  1   1   same',
      'entities           -        5   5   same',
      'entity_properties  -        2   2   same',
      'user_sightings     -        1   1   same',
      'identity_links     -        1   1   same',
      'dead_letters       -        2   2   same',
      expect.stringMatching(/^a1 and a2 are the same: 5 events through 20\d\d-.*Z\.$/),
    ]);
    expect(await recorded(a1)).toEqual([{ other: 'a2', months: 3, events: 5, differing: [] }]);
    expect(await recorded(a2)).toEqual([{ other: 'a1', months: 3, events: 5, differing: [] }]);
  });

  test('differ: each table, month and row is named, and both record it', async () => {
    await using servers = await startFilled();
    const { a1, a2 } = servers.of;
    await remove(a2, 'events', `uuid = '${uuidOf(2)}' OR toYYYYMM(timestamp) = 202604`);
    await remove(a1, 'events', `uuid = '${uuidOf(4)}'`);
    await a1.insert('events', { ...LATE[0], properties: '{"a":1}' });
    await a1.insert('entity_properties', property('bob', 'team', NOON_US + 2));
    await remove(a2, 'dead_letters', "id = 'two'");
    await remove(a1, 'user_sightings', 'true');
    await remove(a2, 'identity_links', 'true');
    await remove(a2, 'entities', "kind = 'organization'");
    await a1.insert('entities', seen('user', 'bob', NOON_US, { first_seen_at: '2026-01-01 00:00:00' }));
    await a1.insert('user_deletions', deletion('lost'));
    const { code, errors, lines } = await compare(servers);
    expect([code, errors]).toEqual([1, []]);
    expect(lines).toEqual([
      'table              month    a1  a2',
      'user_deletions     -        2   1   differs',
      'events             2020     1   1   differs',
      'events             2026-03  3   2   differs',
      'events             2026-04  1   0   differs',
      'entities           -        5   4   differs',
      'entity_properties  -        2   2   differs',
      'user_sightings     -        0   1   differs',
      'identity_links     -        1   0   differs',
      'dead_letters       -        2   1   differs',
      '  user_deletions ["a","lost"]: only a1 has it',
      `  events ["a","2020-01-01 00:00:00.000","${uuidOf(4)}"]: differs`,
      `  events ["a","2026-03-01 12:00:00.000","${uuidOf(2)}"]: only a1 has it`,
      `  events ["a","2026-04-01 12:00:00.000","${uuidOf(5)}"]: only a1 has it`,
      expect.stringMatching(
        /^ {2}entities \["a","(user","bob",""\]: differs|organization","acme",""\]: only a1 has it)$/,
      ),
      expect.stringMatching(
        /^ {2}entities \["a","(user","bob",""\]: differs|organization","acme",""\]: only a1 has it)$/,
      ),
      '  entity_properties ["a","user","bob","plan",0]: differs',
      `  user_sightings ["a","ann",${NOON_US},""]: only a2 has it`,
      `  identity_links ["a","v","ann",${NOON_US},0]: only a1 has it`,
      '  dead_letters ["a","two"]: only a1 has it',
      'They differ: user_deletions, events 2020, events 2026-03, events 2026-04, entities, entity_properties, user_sightings, identity_links, dead_letters.',
    ]);
    const differing = [
      'user_deletions',
      'events',
      'entities',
      'entity_properties',
      'user_sightings',
      'identity_links',
      'dead_letters',
    ];
    expect(await recorded(a1)).toEqual([{ other: 'a2', months: 3, events: 5, differing }]);
    expect(await recorded(a2)).toEqual([{ other: 'a1', months: 3, events: 3, differing }]);
  });

  test('are the same while a user is deleted, or erased, on one of them alone', async () => {
    await using servers = await startFilled();
    const { a1, a2 } = servers.of;
    await a1.insert('user_deletions', deletion('ann', nowUs()));
    await a1.insert('pending_deletions', { ...deletion('ann', nowUs()), stored_at: timeOf(nowUs()) });
    // A deletion of the past that was sent just now. a2 has erased the user.
    for (const server of [a1, a2]) {
      await server.insert('events', event(10, 'cid'), event(11, 'cid', DELETED_US + 1));
      await server.insert(
        'entities',
        seen('user', 'cid'),
        seen('user', 'cid', DELETED_US + 1, { other_id: String(DELETED_US) }),
      );
    }
    await a2.insert('user_deletions', deletion('cid'));
    await a2.insert('pending_deletions', { ...deletion('cid'), stored_at: timeOf(nowUs()) });
    await remove(a2, 'events', `uuid = '${uuidOf(10)}'`);
    await remove(a2, 'entities', "id = 'cid' AND other_id = ''");
    const { lines, ...outcome } = await compare(servers);
    expect(outcome).toEqual(SAME);
    expect(lines).toContain('events             2026-03  2   2   same');
    expect(lines.at(-1)).toMatch(/^a1 and a2 are the same: 3 events/);
  });

  test('are the same, but for events that were sent again around the deletion of their first user', async () => {
    await using servers = await startFilled();
    const { a1, a2 } = servers.of;
    for (const server of [a1, a2]) {
      await server.insert('events', event(10, 'gone'));
      await server.insert('user_deletions', deletion('gone'));
      await server.insert('pending_deletions', { ...deletion('gone'), stored_at: timeOf(DELETED_US) });
    }
    // a1 knew the deletion by then.
    await a1.insert('events', event(10, 'dan', DELETED_US - 1, { timestamp: timeOf(NOON_US), group_id: 'dans' }));
    await a1.insert('entities', seen('user', 'dan'), seen('organization', 'dans'));
    const { lines, ...outcome } = await compare(servers);
    expect(outcome).toEqual(SAME);
    expect(lines.slice(10)).toEqual([
      '3 rows may differ: events that were sent again around the deletion of their first user, and what these name. They do not count. The first ones:',
      `  events ["a","2026-03-01 12:00:00.000","${uuidOf(10)}"]: differs`,
      expect.stringMatching(/^ {2}entities .*: only a1 has it$/),
      expect.stringMatching(/^ {2}entities .*: only a1 has it$/),
      expect.stringMatching(/^a1 and a2 are the same: /),
    ]);
  });
});

test('what differs around a deletion is mended: both show the same then, once', async () => {
  await using servers = await startFilled(engines, { altersTables: true });
  const { a1, a2 } = servers.of;
  const noonMs = NOON_US / 1_000;
  const row = (number: number, user_id: string, second: number, fields: Partial<EventRow> = {}): EventRow => ({
    ...{ workspace_id: 'a', uuid: uuidOf(number), event: `e${second}`, user_id, group_id: 'acme' },
    ...{ timestamp: noonMs, received_at: NOON_US + second * 1_000_000, ...fields },
  });
  const stamped = (number: number, user_id: string, second: number) =>
    row(number, user_id, second, { timestamp: noonMs + second * 1_000, stamped: 1 });
  const deletions = ['gone', 'away'].map((id): ChangeRow => {
    const change_id = uuidOf(1);
    return { workspace_id: 'a', kind: 'user', id, operation: 'delete', version: DELETED_US, change_id };
  });
  // Byte for byte, what a double and an escape say in another way.
  const properties = '{"n":12345678901234567890.10,"t":"\\ud800 \\u00e4\\n"}';
  const more = { anonymous_id: 'é', type: 'page', context: { c: [1, 2] }, traits: { x: {} } };
  const originals = [row(10, 'gone', 0), row(11, 'gone', 0), row(12, 'gone', 0), stamped(13, 'away', 0)];
  const dan = JSON.stringify(row(10, 'dan', 2, more)).replace(/}$/, `,"properties":${properties}}`);
  const later = [
    ...[dan, row(11, 'dan', 2, { group_id: 'dans' }), row(11, 'eve', 3)],
    ...[row(12, '', 2, { anonymous_id: 'v' }), stamped(13, 'fay', 2), stamped(13, 'fay', 3)],
  ] as const;
  const [dan10, dan11, eve11, visitor12, fay13, later13] = later;
  // One log, but for a copy of the deletions in another partition: when that is read depends on the server.
  await storeRows(a1, [...originals, visitor12]);
  await storeRows(a1, [], deletions);
  await storeRows(a1, [dan10, dan11, eve11, fay13, later13]);
  await storeRows(a2, [...originals, dan10, dan11, fay13]);
  await storeRows(a2, [], deletions);
  await storeRows(a2, [eve11, visitor12, later13]);

  const declined = await mend(servers);
  expect([declined.code, declined.lines.at(-1)]).toEqual([1, 'nothing was changed']);
  expect(declined.lines.join('\n')).toContain('rows may differ');
  expect(await storeSent(servers)).toBe(0);
  const mended = await mend(servers, '--yes');
  expect([mended.code, mended.errors]).toEqual([0, []]);
  expect(mended.lines.slice(-4)).toEqual([
    '4 events are sent to Kafka again: a1 or a2 lacks them.',
    expect.stringMatching(/^a1 loses 0 events that repeat another one, and gets \d+ rows of users, organizations and/),
    expect.stringMatching(/^a2 loses 2 events that repeat another one, and gets \d+ rows of users, organizations and/),
    'Mended. What was sent to Kafka is the same once both have stored it: compare them again in a minute.',
  ]);
  // Before the writers have come that far, it says the same, and does it again.
  expect((await mend(servers, '--yes')).lines).toContain('4 events are sent to Kafka again: a1 or a2 lacks them.');
  expect(await storeSent(servers)).toBe(8);
  const { lines, ...outcome } = await compare(servers);
  expect(lines.join('\n')).not.toContain('differ');
  expect(outcome).toEqual(SAME);
  expect(lines.at(-1)).toMatch(/^a1 and a2 are the same: 9 events/);
  expect((await mend(servers, '--yes')).lines.at(-1)).toBe('There is nothing to mend.');
  const shown = `SELECT user_id, event, properties FROM events
    WHERE user_id IN ('dan', 'eve', 'fay') OR anonymous_id = 'v' ORDER BY uuid`;
  for (const server of [a1, a2]) {
    expect(await server.read(shown)).toEqual([
      { user_id: 'dan', event: 'e2', properties },
      { user_id: 'dan', event: 'e2', properties: '{}' },
      { user_id: '', event: 'e2', properties: '{}' },
      { user_id: 'fay', event: 'e2', properties: '{}' },
    ]);
  }
});

test('no row of a deleted user comes back, as nothing would erase it', async () => {
  await using servers = await startFilled();
  const { a2 } = servers.of;
  await a2.insert('user_deletions', deletion('gone'), deletion('came back'));
  const rowOf = (kind: string, id: string, version: number, other_id = '', user = id) => ({
    ...seen(kind, id, version, { other_id }),
    user,
  });
  await new MendedServer('a2', a2.client, randomUUID()).storeEntities([
    ...[rowOf('user', 'gone', DELETED_US), rowOf('membership', 'gone', DELETED_US, 'acme')],
    rowOf('member', 'acme', DELETED_US, 'gone', 'gone'),
    // It may have times from before the deletion.
    { ...rowOf('user', 'came back', DELETED_US + 5_000), first_seen_at: '2026-01-01 00:00:00.000' },
    ...[rowOf('membership', 'came back', DELETED_US + 1, 'acme'), rowOf('organization', 'gone', 1, '', '')],
  ] as EntityRow[]);
  const stored = `SELECT kind, id, other_id, toString(first_seen_at) AS first FROM entities
    WHERE id IN ('gone', 'came back') OR other_id IN ('gone', 'came back') ORDER BY kind`;
  const found = await a2.read<{ kind: string }>(stored);
  expect(found.map(({ kind }) => kind).sort()).toEqual(['membership', 'organization', 'user']);
  const first = '2026-03-01 12:00:01.005';
  expect(found).toContainEqual({ kind: 'user', id: 'came back', other_id: String(DELETED_US), first });
});

test('what is not mended keeps the exit code, and a wrong number of partitions is refused', async () => {
  await using servers = await startFilled();
  const { a1, a2 } = servers.of;
  await a1.insert('entity_properties', property('bob', 'team', NOON_US + 2));
  expect(await mend(servers, '--yes')).toMatchObject({ code: 1 });
  await a2.insert('events', event(20, 'ann'));
  await a1.insert('topic_partitions', { topic: servers.topics.events, partitions: PARTITIONS + 1 });
  const { code, errors } = await mend(servers, '--yes');
  expect([code, errors]).toEqual([
    1,
    [
      `KAFKA_PARTITIONS is ${PARTITIONS}, and the databases say ${PARTITIONS + 1}: set it to theirs.`,
      'a1 and a2 could not be mended. Run the command again.',
    ],
  ]);
  expect(await storeSent(servers)).toBe(0);
});

test('each table is read once, and no more where nothing differs', async () => {
  await using folder = await makeTempDir();
  const engine = await startClickHouse({ dataDir: folder.path, accounts: TEST_ACCOUNTS, queryLog: true });
  onTestFinished(() => engine.kill9());
  await using servers = await startFilled({ ...engines, clickhouseUrl: engine.url });
  const { a1, a2 } = servers.of;
  for (const { client } of [a1, a2]) {
    await client.command({
      query: `INSERT INTO entities (workspace_id, kind, id, version) SELECT 'a', 'user', toString(number), ${NOON_US} FROM numbers(5000)`,
    });
  }
  expect((await compare(servers)).code).toBe(0);
  await a1.client.command({ query: 'SYSTEM FLUSH LOGS' });
  const read = await a1.read<{ statement: string; rows: number }>(`
    SELECT splitByChar('/', query_id)[4] AS statement, sum(read_rows) AS rows FROM system.query_log
    WHERE type = 'QueryFinish' AND query_id LIKE 'sluice-compare/%/a1/%' AND splitByChar('/', query_id)[4] LIKE '%-%'
      AND query_kind = 'Select' AND read_rows > 0 AND splitByChar('/', query_id)[4] != ''
    GROUP BY statement ORDER BY statement`);
  const stored = async (table: string) =>
    (await a1.read<{ rows: number }>(`SELECT count() AS rows FROM ${table}`))[0]?.rows ?? 0;
  const [events, entities, deletions] = [
    await stored('events'),
    await stored('entities'),
    await stored('user_deletions'),
  ];
  expect(Object.fromEntries(read.map(({ statement, rows }) => [statement, rows]))).toEqual({
    'checksums-events': events,
    // Deletions say of which users the times are compared, and what was set once first.
    'checksums-entities': entities + deletions,
    'checksums-user-deletions': deletions,
    'checksums-entity-properties': (await stored('entity_properties')) + deletions,
    'checksums-user-sightings': await stored('user_sightings'),
    // A merge of users is compared until either is deleted.
    'checksums-identity-links': (await stored('identity_links')) + deletions,
    'checksums-dead-letters': await stored('dead_letters'),
  });
});

test('what speaks against a comparison is named, all of it, and nothing is recorded', async () => {
  await using servers = await startFilled(engines, { altersTables: true });
  const { a1, a2 } = servers.of;
  await recordState(a1.client, 'incomplete', 'Offsets 1 to 2 are gone.');
  await a1.client.command({ query: "INSERT INTO schema_migrations (number, name) VALUES (9998, '9998-newer.sql')" });
  await servers.writeFile({ a1: { partitions: '0-0' }, a2: { partitions: '1-1' } });
  expect(await compare(servers)).toEqual({
    code: 1,
    lines: [],
    errors: [
      'a1: the database stores the partitions all, and the file says 0-0.',
      'a1 has migrations of a newer version: use the command of that version.',
      'a1 is incomplete: compare complete servers. Offsets 1 to 2 are gone.',
      'a2: the database stores the partitions all, and the file says 1-1.',
      'a1 has the partitions 0-0, and a2 1-1: they must be the same.',
      'a1 and a2 could not be compared.',
    ],
  });
  await servers.writeFile({ a1: { url: NOWHERE }, a2: {} });
  await recordState(a2.client, 'filling');
  await a2.client.command({ query: 'TRUNCATE TABLE storing_progress' });
  expect((await compare(servers)).errors).toEqual([
    expect.stringMatching(/^a1 does not answer: .*ECONNREFUSED/),
    'a2 is filling: compare complete servers.',
    'a2: its writers have not recorded how far they are.',
    'a1 and a2 could not be compared.',
  ]);
  expect([...(await recorded(a1)), ...(await recorded(a2))]).toEqual([]);
});

test('wrong arguments are all named before anything is connected to', async () => {
  await using servers = await startServers(engines, ['a1', 'a2']);
  for (const [args, message] of [
    [['a1'], 'compare needs the NAMES of two servers.'],
    [['a1', 'a1'], 'The two servers must not be the same.'],
    [
      ['a3', 'a4'],
      'NAME: there is no server a3 in CLICKHOUSE_SERVERS_FILE, which has a1, a2.\nNAME: there is no server a4',
    ],
    [['a1', 'a2', '--yes'], '--yes needs --mend'],
    [['a1', 'a2', '--from', 'a1'], "'--from'"],
  ] as const) {
    const { code, stdout, stderr } = await servers.sluice(['servers', 'compare', ...args]);
    expect([code, stdout, stderr]).toEqual([2, '', expect.stringContaining(message)]);
  }
});
