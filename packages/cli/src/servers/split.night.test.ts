import { randomUUID } from 'node:crypto';
import { withAdmin } from '@sluice/shared/kafka/topics';
import { entityHash, eventHash } from '@sluice/shared/rows/row-hashes';
import { isInRange, parseRange } from '@sluice/shared/servers/partition-range';
import fc, { sample } from '@sluice/shared/testing/fast-check';
import { expect, inject, test } from 'vitest';
import { startServers, type TestServer } from '../testing/test-servers.ts';

const engines = { clickhouseUrl: inject('clickhouseUrl'), kafkaBrokers: inject('kafkaBrokers') };

const PARTITIONS = 5;

/** `c1` has a part of what `b2` has. */
const RANGES = { b1: '0-1', b2: '2-4', c1: '2-3' } as const;

type Divided = keyof typeof RANGES;

const startAll = () => startServers(engines, ['a1', 'b1', 'b2', 'c1'], { partitions: PARTITIONS, ranges: RANGES });

type Servers = Awaited<ReturnType<typeof startAll>>;

const IDS = [
  ...new Set([
    ...['.', '..', ' ', '\0', "'\\", 'é', 'e\u0301', '\u{1f600}', '\u{10ffff}', '\ufffd', 'x'.repeat(10_000)],
    ...sample(fc.string({ unit: 'binary', minLength: 1, maxLength: 20 }), 100),
  ]),
];

const WORKSPACES = ['a', 'a.b_c-9'];

/** A row with the partition that its producer chose. */
interface Placed {
  readonly partition: number;
  readonly row: Readonly<Record<string, unknown>>;
}

/** Rows of the tables that are divided, with what tells one from another in the first column. */
const ROWS: Readonly<Record<string, readonly Placed[]>> = {
  events: sample(fc.uuid(), 300).map((uuid, index) => ({
    partition: eventHash(uuid) % PARTITIONS,
    row: {
      uuid,
      workspace_id: workspaceOf(index),
      timestamp: `2026-0${1 + (index % 3)}-01`,
      received_at: '2026-04-01',
    },
  })),
  entity_properties: IDS.flatMap((id, index) =>
    ['user', 'organization'].map((kind) => ({
      partition: entityHash(workspaceOf(index), kind, id) % PARTITIONS,
      row: {
        ...{ id, workspace_id: workspaceOf(index), kind, property: '.' },
        register: { version: 1, change_id: randomUUID(), operation: 'set', value: '1' },
      },
    })),
  ),
  user_sightings: IDS.map((user_id, index) => ({
    partition: entityHash(workspaceOf(index), 'user', user_id) % PARTITIONS,
    row: { user_id, workspace_id: workspaceOf(index), version: 1 },
  })),
  identity_links: IDS.map((anonymous_id, index) => ({
    partition: entityHash(workspaceOf(index), 'visitor', anonymous_id) % PARTITIONS,
    row: { anonymous_id, workspace_id: workspaceOf(index), user_id: 'ann', version: 1 },
  })),
  // The topic has two partitions over which no rows are spread.
  dead_letters: Array.from({ length: PARTITIONS + 2 }, (_, partition) => ({
    partition: partition % PARTITIONS,
    row: { id: `letter ${partition}`, kind: 'events', row: '{}', partition },
  })),
};

function workspaceOf(index: number): string {
  return WORKSPACES[index % WORKSPACES.length] as string;
}

/** Tables that each server gets as they are. */
const WHOLE = ['entities', 'user_deletions', 'pending_deletions', 'retention', 'topic_partitions'];

async function fill({ topics, of: { a1 } }: Servers): Promise<void> {
  for (const [table, placed] of Object.entries(ROWS)) await a1.insert(table, ...placed.map(({ row }) => row));
  const seen = { first_seen_at: '2026-01-01', last_seen_at: '2026-03-01', version: 1 };
  await a1.insert(
    'entities',
    ...IDS.flatMap((id) => [
      { workspace_id: 'a', kind: 'user', id, ...seen },
      { workspace_id: 'a', kind: 'membership', id, other_id: 'g', ...seen },
      { workspace_id: 'a', kind: 'member', id: 'g', other_id: id, ...seen },
    ]),
  );
  for (const table of ['user_deletions', 'pending_deletions']) {
    await a1.insert(table, ...IDS.map((user_id) => ({ workspace_id: 'deleted', user_id, version: 5 })));
  }
  await a1.insert('retention', { workspace_id: 'a', days: 4_000 });
  for (const topic of Object.values(topics)) {
    await a1.insert('topic_partitions', { topic, partitions: PARTITIONS });
    const positions = Array.from({ length: PARTITIONS }, (_, partition) => ({ topic, partition }));
    await a1.insert(
      'writer_positions',
      ...positions.map((position) => ({ ...position, group_id: a1.group, next_offset: 0, leader_epoch: -1 })),
    );
  }
}

const copy = (servers: Servers, from: string, to: string) =>
  servers.sluice(['servers', 'copy', '--from', from, '--to', to, '--yes']);

/** Returns the rows of a table as texts, in their order. */
async function rowsIn(server: TestServer, table: string): Promise<string[]> {
  return (await server.read(`SELECT * FROM ${table} FINAL ORDER BY ALL`)).map((row) => JSON.stringify(row));
}

async function committedPartitions({ kafka, topics, of }: Servers, name: Divided): Promise<number[]> {
  const groupId = of[name].group;
  const found = await withAdmin(kafka, (admin) => admin.fetchOffsets({ groupId, topics: Object.values(topics) }));
  const committed = found.flatMap(({ partitions }) => partitions.filter(({ offset }) => offset !== '-1'));
  return [...new Set(committed.map(({ partition }) => partition))].sort();
}

test('servers with ranges get the rows of their partitions, and what cannot be divided as a whole', async () => {
  await using servers = await startAll();
  const { of } = servers;
  await fill(servers);
  for (const [from, to] of [
    ['a1', 'b1'],
    ['a1', 'b2'],
    ['b2', 'c1'],
  ] as const) {
    const { code, stdout, stderr } = await copy(servers, from, to);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toContain(`${to} gets those of the partitions ${RANGES[to]} of 5, about `);
  }

  for (const [name, range] of Object.entries(RANGES) as [Divided, string][]) {
    const isOwn = ({ partition }: Placed) => isInRange(parseRange(range), partition);
    for (const [table, placed] of Object.entries(ROWS)) {
      const own = placed.filter(isOwn).map(({ row }) => Object.values(row).slice(0, 2).map(String));
      const [key = '', second = ''] = Object.keys(placed[0]?.row ?? {});
      const found = await of[name].read<Record<string, string>>(`SELECT ${key}, ${second} FROM ${table}`);
      expect([name, table, found.map((row) => [row[key], row[second]]).sort()]).toEqual([name, table, own.sort()]);
      expect(own.length).toBeGreaterThan(0);
    }
    for (const table of WHOLE) {
      expect([name, table, await rowsIn(of[name], table)]).toEqual([name, table, await rowsIn(of.a1, table)]);
    }
    const partitions = Array.from({ length: PARTITIONS }, (_, partition) => partition);
    const ofRange = partitions.filter((partition) => isInRange(parseRange(range), partition));
    const positions = 'SELECT DISTINCT partition FROM writer_positions ORDER BY partition';
    expect(await of[name].read(positions)).toEqual(ofRange.map((partition) => ({ partition })));
    expect(await committedPartitions(servers, name)).toEqual(ofRange);
  }
});

test('a server is not filled from one that lacks some of its partitions, or when it has more than there are', async () => {
  await using servers = await startAll();
  await fill(servers);
  expect(await copy(servers, 'a1', 'b2')).toMatchObject({ code: 0 });
  const refused = async (from: string, to: string) => {
    const { code, stdout, stderr } = await copy(servers, from, to);
    expect([code, stdout, stderr]).toEqual([1, '', expect.stringMatching(/\nNothing was changed\.\n$/)]);
    return stderr;
  };
  await servers.writeFile({ a1: {}, b1: { serves: false }, b2: { serves: false } });
  expect(await refused('b2', 'a1')).toContain(
    'b2 has the partitions 2-4, and a1 all: a server is filled from one that has all of its partitions.',
  );
  expect(await refused('b2', 'b1')).toContain('b2 has the partitions 2-4, and b1 0-1: ');
  const { a1 } = servers.of;
  await a1.client.command({ query: 'TRUNCATE TABLE topic_partitions' });
  const topic = servers.topics.events;
  await a1.insert('topic_partitions', { topic, partitions: 1 });
  expect(await refused('a1', 'b1')).toContain('b1 has the partitions 0-1, and the rows of a1 are spread over 1.');
  await a1.client.command({ query: 'TRUNCATE TABLE topic_partitions' });
  expect(await refused('a1', 'b1')).toContain('spread over a number of partitions that no writer has recorded.');
});
