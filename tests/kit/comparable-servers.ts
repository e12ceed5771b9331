import { randomUUID } from 'node:crypto';
import { startServers, type TestServer, type TestServersOptions } from '@sluice/cli/testing/test-servers';
import { withAdmin } from '@sluice/shared/kafka/topics';
import type { ChangeRow, EventRow } from '@sluice/shared/rows';
import { type RowBatch, type RowMessage, type SourceMessage, toRowBatch } from '@sluice/storage/protocol/row-batch';
import { StagedStore } from '@sluice/writer/batch/staged-batch';
import type { Kafka } from 'kafkajs';
import { inject } from 'vitest';

export const engines = { clickhouseUrl: inject('clickhouseUrl'), kafkaBrokers: inject('kafkaBrokers') };

type Servers = Awaited<ReturnType<typeof startServers<'a1' | 'a2'>>>;

export const NOON_US = Date.UTC(2026, 2, 1, 12) * 1_000;
export const DELETED_US = NOON_US + 1_000_000;

/** What was received now is newer than what is compared. */
export const nowUs = () => Date.now() * 1_000;

export const timeOf = (us: number) => new Date(Math.floor(us / 1_000)).toISOString();

export const uuidOf = (number: number) => `0190a0a0-0000-7000-8000-${number.toString(16).padStart(12, '0')}`;

/** An event of a user in the organization `acme`. */
export function event(number: number, user_id: string, received_at = NOON_US, fields: object = {}) {
  const timestamp = timeOf(received_at);
  return {
    workspace_id: 'a',
    timestamp,
    uuid: uuidOf(number),
    event: 'e',
    user_id,
    group_id: 'acme',
    received_at,
    ...fields,
  };
}

export function seen(kind: string, id: string, version = NOON_US, fields: object = {}) {
  const at = timeOf(version);
  return { workspace_id: 'a', kind, id, first_seen_at: at, last_seen_at: at, version, ...fields };
}

export function property(id: string, value: string, version = NOON_US) {
  const register = { version, change_id: uuidOf(1), operation: 'set', value: JSON.stringify(value) };
  return { workspace_id: 'a', kind: 'user', id, property: 'plan', register };
}

export function deadLetter(id: string, fields: object = {}) {
  const row = JSON.stringify({ workspace_id: 'a', user_id: 'ann', received_at: NOON_US });
  return { id, kind: 'events', format: '1', row, recorded_at: '2026-03-01 12:00:01', ...fields };
}

export const deletion = (user_id: string, version = DELETED_US) => ({ workspace_id: 'a', user_id, version });

const MARCH = [event(1, 'ann'), event(2, 'bob'), event(3, 'ann', NOON_US + 5_000_000)];
export const LATE = [event(4, 'ann', NOON_US, { timestamp: '2020-01-01 00:00:00' })];
const APRIL = [event(5, 'bob', NOON_US + 31 * 86_400_000_000)];

const ROWS: Readonly<Record<string, readonly object[]>> = {
  events: [...MARCH, ...LATE, ...APRIL],
  entities: [
    ...[seen('user', 'ann', NOON_US), seen('user', 'ann', NOON_US + 5_000_000), seen('user', 'bob', NOON_US)],
    ...[seen('organization', 'acme'), seen('membership', 'ann', NOON_US, { other_id: 'acme' })],
    seen('member', 'acme', NOON_US, { other_id: 'ann' }),
  ],
  entity_properties: [property('ann', 'free'), property('ann', 'pro', NOON_US + 1), property('bob', 'free')],
  user_sightings: [{ workspace_id: 'a', user_id: 'ann', version: NOON_US }],
  identity_links: [{ workspace_id: 'a', anonymous_id: 'v', user_id: 'ann', version: NOON_US }],
  user_deletions: [deletion('old', 5), deletion('old')],
  dead_letters: [deadLetter('one'), deadLetter('two')],
};

/** Fills a server, a row at a time or all at once, and records that it has everything up to now. */
async function fill(server: TestServer, isOneByOne = false): Promise<void> {
  for (const [table, rows] of Object.entries(ROWS)) {
    if (isOneByOne) for (const row of rows.toReversed()) await server.insert(table, row);
    else await server.insert(table, ...rows);
  }
  await progress(server);
}

async function progress(server: TestServer): Promise<void> {
  await server.client.command({ query: 'INSERT INTO storing_progress SELECT now64(3), now64(3), 0' });
}

export async function startFilled(at = engines, options: TestServersOptions<'a1' | 'a2'> = {}): Promise<Servers> {
  const servers = await startServers(at, ['a1', 'a2'], options);
  await fill(servers.of.a1);
  await fill(servers.of.a2, true);
  return servers;
}

/** Removes rows from a server, as its writers do. */
export async function remove(server: TestServer, table: string, condition: string): Promise<void> {
  await server.client.command({
    query: `ALTER TABLE ${table} DELETE WHERE ${condition}`,
    clickhouse_settings: { mutations_sync: '2' },
  });
}

export async function compare(servers: Servers) {
  const { code, stdout, stderr } = await servers.sluice(['servers', 'compare', 'a1', 'a2']);
  return { code, errors: errorsIn(stderr), lines: stdout.split('\n').slice(0, -1) };
}

/** Where it is busy, it says how far it is. */
function errorsIn(stderr: string): string[] {
  return stderr
    .split('\n')
    .filter((line) => line !== '' && !line.endsWith('parts done') && !line.startsWith('mending: '));
}

export const SAME = { code: 0, errors: [] };

export const recorded = (server: TestServer) =>
  server.read('SELECT other, months, event_count AS events, differing FROM server_comparisons ORDER BY compared_at');

/** What the writers of both servers do: stores what is in Kafka, with the code of a writer. */
export async function storeSent({ kafka, topics, of }: Servers): Promise<number> {
  const sent = await readTopic(kafka, topics.events);
  for (const server of Object.values(of)) await storeBatch(server, toRowBatch(sent));
  return sent.length;
}

export async function storeRows(
  server: TestServer,
  events: readonly (EventRow | string)[],
  changes: readonly ChangeRow[] = [],
) {
  const message = (kind: 'events' | 'changes', rows: readonly (object | string)[]): RowMessage => {
    const lines = rows.map((row) => `${typeof row === 'string' ? row : JSON.stringify(row)}\n`);
    return { kind, topic: 't', partition: 0, offset: '0', value: Buffer.from(lines.join('')) };
  };
  await storeBatch(server, {
    events: events.length === 0 ? [] : [message('events', events)],
    changes: changes.length === 0 ? [] : [message('changes', changes)],
    deadLetters: [],
  });
}

async function storeBatch({ client, group, name }: TestServer, batch: RowBatch): Promise<void> {
  const ownership = { queryIdPrefix: () => `test/${name}` };
  const store = new StagedStore({ client, ownership, groupId: group, statementTimeoutMs: 230_000 });
  await store.open(batch, { incarnation: 1, generation: 1, server: '' }, () => undefined).store();
}

async function readTopic(kafka: Kafka, topic: string): Promise<SourceMessage[]> {
  const offsets = await withAdmin(kafka, (admin) => admin.fetchTopicOffsets(topic));
  const count = offsets.reduce((sum, { high, low }) => sum + Number(high) - Number(low), 0);
  const found: SourceMessage[] = [];
  const consumer = kafka.consumer({ groupId: randomUUID() });
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  const all = new Promise<void>((resolve) => {
    if (count === 0) resolve();
    const eachMessage = async (one: SourceMessage) => {
      if (found.push(one) === count) resolve();
    };
    void consumer.run({ eachMessage });
  });
  await all;
  await consumer.disconnect();
  return found;
}

export async function mend(servers: Servers, ...more: readonly string[]) {
  const { code, stdout, stderr } = await servers.sluice(['servers', 'compare', 'a1', 'a2', '--mend', ...more]);
  return { code, errors: errorsIn(stderr), lines: stdout.split('\n').slice(0, -1) };
}
