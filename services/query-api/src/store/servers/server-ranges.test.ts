import { createLogger } from '@sluice/shared/base/log';
import { parseServersFile } from '@sluice/shared/servers/servers-file';
import { afterEach, expect, onTestFinished, test, vi } from 'vitest';
import { ConnectionFailure } from '../read-failures.ts';
import { ServerPool } from './server-pool.ts';
import type { ServerState } from './server-state.ts';

const RANGES = { a1: '0-23', a2: '0-23', b1: '24-47', b2: '24-47' };
const SERVERS = Object.entries(RANGES).map(([name, partitions]) => ({ name, url: `http://${name}:8123`, partitions }));

let pool: ServerPool;
/** The names of the servers whose polls fail. */
let away: ReadonlySet<string>;
/** Polls wait until it is over. */
let held: Promise<unknown> | undefined;
/** How far servers are behind, in milliseconds; the others are not. */
let behindMs: Readonly<Record<string, number>>;

function stateOf(server: string, partitions: string): ServerState {
  return {
    identity: { id: '0190a0a0-0000-7000-8000-00000000000a', server, partitions, state: 'complete' },
    ...{ migrations: Number.POSITIVE_INFINITY, isTooNew: false, behindMs: behindMs[server] ?? 0, partitionCount: 48 },
    replication: undefined,
    ...{
      deleting: new Set<string>(),
      recentDeletions: [],
      unlistedMs: new Map(),
      retentionDays: new Map<string, number>(),
    },
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

function startPool(servers: readonly object[] = SERVERS): void {
  away = new Set();
  held = undefined;
  behindMs = {};
  pool = new ServerPool({
    config: { READ_LAG_MS_MAX: 5_000, READ_STALE_MS_MAX: 60_000, READ_SPREAD: false },
    login: { user: 'u', password: 'p' },
    firstGroup: 'g',
    connect: () => NO_READER,
    async poll({ server: { name } }) {
      await held;
      if (away.has(name)) throw new ConnectionFailure(`${name} is away`);
      return stateOf(name, (RANGES as Readonly<Record<string, string>>)[name] ?? 'all');
    },
    logger: createLogger('test', 'silent'),
    onGivenUp: () => undefined,
    readDeletedWithUsers: async () => [],
  });
  setFile(servers);
}

function setFile(servers: readonly object[]): void {
  pool.setServers(parseServersFile(JSON.stringify({ servers }), { database: 'sluice', group: 'g' }));
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

test('a request that chooses while one server is replaced by ranges reads these', async () => {
  startPool([{ name: 'all', url: 'http://all:8123' }]);
  expect(await chosen()).toBe('all');
  // What is known of it is too old by now.
  vi.useFakeTimers({ toFake: ['performance'], now: performance.now() + 10_000 });
  onTestFinished(() => {
    vi.useRealTimers();
  });
  let answer = () => {};
  held = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const choosing = chosen();
  setFile([{ name: 'all', url: 'http://all:8123', serves: false }, ...SERVERS]);
  answer();
  expect(await choosing).toBe('a1+b1');
  expect(await chosen('all')).toBe('a1+b1');
  expect(pool.readable('all')).toBeUndefined();
});

test('where nothing is known of a range yet, requests wait for an answer however long it takes', async () => {
  startPool();
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => {
    vi.useRealTimers();
  });
  let answer = () => {};
  held = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const choosing = chosen();
  await vi.advanceTimersByTimeAsync(60_000);
  answer();
  expect(await choosing).toBe('a1+b1');
});
