import { createLogger } from '@sluice/shared/log';
import { parseServersFile } from '@sluice/shared/servers/servers-file';
import { afterEach, expect, test } from 'vitest';
import { ConnectionFailure } from '../clickhouse/read-failures.ts';
import { ServerPool } from './server-pool.ts';
import type { ServerState } from './server-state.ts';

const RANGES = { a1: '0-23', a2: '0-23', b1: '24-47', b2: '24-47' };
const FILE = {
  servers: Object.entries(RANGES).map(([name, partitions]) => ({ name, url: `http://${name}:8123`, partitions })),
};

let pool: ServerPool;
/** The names of the servers whose polls fail. */
let away: ReadonlySet<string>;
/** How far servers are behind, in milliseconds; the others are not. */
let behindMs: Readonly<Record<string, number>>;

function stateOf(server: string, partitions: string): ServerState {
  return {
    identity: { id: '0190a0a0-0000-7000-8000-00000000000a', server, partitions, state: 'complete' },
    ...{ migrations: Number.POSITIVE_INFINITY, isTooNew: false, behindMs: behindMs[server] ?? 0, partitionCount: 48 },
    ...{ deleting: new Set<string>(), recentDeletions: [], retentionDays: new Map<string, number>() },
  };
}

/** Reads nothing: only what is chosen is looked at. */
const NO_READER = {
  read() {
    throw new Error('nothing is read');
  },
  readBytes() {
    throw new Error('nothing is read');
  },
  close: () => undefined,
};

function startPool(): void {
  away = new Set();
  behindMs = {};
  pool = new ServerPool({
    config: { READ_LAG_MS_MAX: 5_000, READ_STALE_MS_MAX: 60_000, READ_SPREAD: false },
    login: { user: 'u', password: 'p' },
    firstGroup: 'g',
    connect: () => NO_READER,
    async poll({ server: { name } }) {
      if (away.has(name)) throw new ConnectionFailure(`${name} is away`);
      return stateOf(name, RANGES[name as keyof typeof RANGES]);
    },
    logger: createLogger('test', 'silent'),
    onGivenUp: () => undefined,
  });
  pool.setServers(parseServersFile(JSON.stringify(FILE), { database: 'sluice', group: 'g' }));
}

afterEach(() => pool.stop());

const chosen = async (...failed: readonly string[]) => (await pool.choose(new Set(failed))).name;

test('one server of each range is read, in the order of partitions', async () => {
  startPool();
  expect(await chosen()).toBe('a1+b1');
});

test('after a failure other servers are read wherever a range has another one, until all have failed', async () => {
  startPool();
  expect(await chosen('a1+b1')).toBe('a2+b2');
  await expect(chosen('a1+b1', 'a2+b2')).rejects.toThrow('there is no other server');
});

test('where the other server of a range is away, the same one is read again beside that of another range', async () => {
  startPool();
  away = new Set(['a2']);
  expect(await chosen('a1+b1')).toBe('a1+b2');
  await expect(chosen('a1+b1', 'a1+b2')).rejects.toThrow('there is no other server');
});

test('without a server of one range nothing is read', async () => {
  startPool();
  away = new Set(['b1', 'b2']);
  await expect(chosen()).rejects.toThrow(/b1: .*; b2: /);
  expect(await pool.missing()).toEqual([expect.stringMatching(/^no ClickHouse server can be read: b1/)]);
});

test('a mirror that lags is no other one: the server that may not have failed is read again', async () => {
  startPool();
  behindMs = { a2: 30_000 };
  expect(await chosen('a1+b1')).toBe('a1+b2');
});

test('where all mirrors lag, one that lags is read rather than the same servers once more', async () => {
  startPool();
  behindMs = { a2: 30_000, b2: 20_000 };
  expect(await chosen('a1+b1')).toBe('a2+b2');
  await expect(chosen('a1+b1', 'a2+b2')).rejects.toThrow('there is no other server');
});

test('a server that is too far behind is not read, also while all answer: it may lack deletions of other ranges', async () => {
  startPool();
  behindMs = { b1: 100_000, b2: 90_000 };
  await expect(chosen()).rejects.toThrow('b2 is too far behind');
  expect(pool.readable('a1+b2')).toBeUndefined();
});

test('what one stream prefers is not what requests read from then on', async () => {
  startPool();
  expect(await chosen()).toBe('a1+b1');
  expect((await pool.choose(new Set(), 'a2+b2')).name).toBe('a2+b2');
  expect(await chosen()).toBe('a1+b1');
});
