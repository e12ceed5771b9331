import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { EventPage } from '../kit/records.ts';
import { type Tenant, takeTenant } from '../kit/shared-pipeline.ts';

const SOURCES = new URL('../../packages/client/src/', import.meta.url).href;

const NOWHERE = 'http://127.0.0.1:9';

let pipeline: Tenant;
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-offline-'));
  pipeline = await takeTenant('offline');
});
afterAll(async () => {
  await rm(folder, { recursive: true });
});

/**
 * Runs a program like a page: Node.js has a localStorage that outlives the process, and the Web Locks of browsers. Each
 * store of one program is a page that is open at the same time.
 */
async function page(origin: string, code: string): Promise<string> {
  const program = `import { createClient } from '${SOURCES}client.ts';
import { offlineStore } from '${SOURCES}offline.ts';
const open = (url, settings = {}, onError = () => {}) => createClient({
  url, key: ${JSON.stringify(pipeline.key)}, batchAgeMsMax: 50, store: offlineStore({ onError }), onError: () => {}, ...settings,
});
const [online, nowhere] = ['${pipeline.services['ingest-api'].url}', '${NOWHERE}'];
const track = (client, event, count, first = 0) => {
  for (let index = first; index < first + count; index += 1) client.track(event, { index }, { userId: 'ada' });
};
${code}`;
  const storage = `--localstorage-file=${join(folder, origin)}`;
  const args = ['--disable-warning=ExperimentalWarning', storage, '--input-type=module', '--eval', program];
  const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 60_000 });
  return stdout.trim();
}

async function stored(event: string): Promise<number[]> {
  await pipeline.drained();
  const { body } = await pipeline.get<EventPage>(`/events?event=${event}&orderByDirection=ASC&limit=1000`);
  return body.results.map(({ properties }) => Number(properties['index']));
}

const range = (count: number) => Array.from({ length: count }, (_, index) => index);

test('calls of a page that was closed without a network are sent by the next one, before its own', async () => {
  await page('closed', `track(open(nowhere), 'closed', 120); process.exit();`);
  await page('closed', `track(open(nowhere), 'closed', 30, 120); process.exit();`);
  const printed = await page(
    'closed',
    `localStorage.setItem('sluice:theme', 'dark');
    const client = open(online);
    track(client, 'closed', 10, 150);
    console.log(await client.close(), JSON.stringify(Object.keys(localStorage)));`,
  );
  expect(printed).toBe('0 ["sluice:theme"]');
  expect(await stored('closed')).toEqual(range(160));
});

test('calls that were delivered are not kept', async () => {
  const printed = await page(
    'kept',
    `const client = open(online);
    track(client, 'kept', 5);
    console.log(Object.keys(localStorage).length);
    await client.flush();
    console.log(Object.keys(localStorage).length, (await navigator.locks.query()).held.length);`,
  );
  expect(printed).toBe('5\n0 0');
});

test('pages that are open at once leave each other their calls, and a call that two pages send is stored once', async () => {
  const printed = await page(
    'open',
    `const first = open(nowhere);
    track(first, 'open', 3);
    await new Promise((resolve) => setTimeout(resolve, 100));
    const second = open(online);
    track(second, 'open', 3, 3);
    await second.flush();
    const left = Object.entries(localStorage).map(([, text]) => JSON.parse(text).properties.index);
    console.log(JSON.stringify(left.sort()));
    process.exit();`,
  );
  expect(printed).toBe('[0,1,2]');
  expect(await stored('open')).toEqual([3, 4, 5]);
  // Without locks, as on a page of plain HTTP, the second page takes the calls of the first.
  await page(
    'open',
    `const { locks } = navigator;
    Object.defineProperty(navigator, 'locks', { value: undefined });
    const pages = [1, 2, 3].map(() => open(online));
    track(pages[1], 'open', 4, 6);
    for (const client of pages) await client.close();
    console.log(Object.keys(localStorage).length);`,
  );
  expect(await stored('open')).toEqual(range(10));
});

test('a call that the queue drops is dropped from the storage as well', async () => {
  const printed = await page(
    'overflow',
    `const client = open(nowhere, { queueCallsMax: 4 });
    track(client, 'overflow', 9);
    console.log(Object.entries(localStorage).map(([, text]) => JSON.parse(text).properties.index).sort().join());`,
  );
  expect(printed).toBe('5,6,7,8');
});

test('a full storage throws nothing, and its calls are in memory', async () => {
  const printed = await page(
    'full',
    `let refused = 0;
    const client = open(online, {}, (error) => { refused += 1; console.log(error.name); });
    for (let size = 5_000_000; size > 0; size = Math.floor(size / 2)) {
      try { for (let index = 0; ; index += 1) localStorage.setItem('x' + size + index, 'x'.repeat(size)); } catch {}
    }
    track(client, 'full', 5);
    console.log(refused, await client.close());`,
  );
  expect(printed).toBe('QuotaExceededError\n1 0');
  expect(await stored('full')).toEqual(range(5));
});

test('without a localStorage the client works as without a store', async () => {
  const printed = await page(
    'none',
    `Object.defineProperty(globalThis, 'localStorage', { get() { throw new Error('blocked'); } });
    const client = open(online, {}, (error) => console.log(error.message));
    track(client, 'none', 3);
    console.log(await client.close());`,
  );
  expect(printed.split('\n')).toEqual(['blocked', 'blocked', '0']);
  expect(await stored('none')).toEqual(range(3));
});

test('in a frame that may not have locks, calls are kept and sent', async () => {
  const deny = `Object.defineProperty(navigator, 'locks', {
    value: { request: () => Promise.reject(new Error('denied')), query: () => Promise.reject(new Error('denied')) },
  });`;
  await page('denied', `${deny} track(open(nowhere), 'denied', 3); setTimeout(() => process.exit(), 200);`);
  const printed = await page(
    'denied',
    `${deny} const client = open(online, {}, (error) => console.log(error.message));
    track(client, 'denied', 3, 3);
    console.log(await client.close());`,
  );
  expect(printed).toBe('denied\n0');
  expect(await stored('denied')).toEqual([3, 4, 5]);
  // Where locks work again, the calls are found.
  expect(await page('denied', `console.log(await open(online).close(), Object.keys(localStorage).length);`)).toBe(
    '0 0',
  );
  expect(await stored('denied')).toEqual(range(6));
});
