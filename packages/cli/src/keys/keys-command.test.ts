import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { createLogger } from '@sluice/shared/base/log';
import { FileKeyRing } from '@sluice/shared/keys/key-ring';
import { readKeysFile } from '@sluice/shared/keys/keys-file';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { runKeysCommand } from './keys-command.ts';

const execute = promisify(execFile);

let folder: string;
let file: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-keys-'));
  file = join(folder, 'data', 'keys.json');
});
afterEach(() => rm(folder, { recursive: true }));

async function keys(...args: string[]): Promise<readonly string[]> {
  return await runKeysCommand(args, { cwd: folder, defaultFile: file, now: () => new Date('2026-03-01T12:00:00Z') });
}

test('services know a new key, and the file does not hold it', async () => {
  const [key = ''] = await keys('create', '--workspace', 'acme', '--scopes', 'query, ingest');
  expect(await readFile(file, 'utf8')).not.toContain(key);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  const ring = new FileKeyRing(file, createLogger('test', 'silent'));
  await ring.start();
  try {
    expect(ring.find(key)).toMatchObject({ workspace: 'acme', scopes: ['ingest', 'query'] });
  } finally {
    await ring.stop();
  }
});

test('list shows the ids that revoke needs, and revoke removes one key only', async () => {
  expect(await keys('list')).toEqual([`${file} has no keys.`]);
  await keys('create', '--workspace', 'acme', '--scopes', 'ingest', '--rate-limit', '50');
  await keys('create', '--name', 'the café’s till', '--workspace', 'b', '--scopes', 'ingest,query,delete');
  const [first, second] = await readKeysFile(file);
  expect(await keys('list')).toEqual([
    'ID            WORKSPACE  SCOPES               RATE LIMIT  CREATED                   NAME',
    `${first?.id}  acme       ingest               50/s        2026-03-01T12:00:00.000Z`,
    `${second?.id}  b          ingest,query,delete  -           2026-03-01T12:00:00.000Z  the café’s till`,
  ]);
  await keys('revoke', String(first?.id));
  expect(await readKeysFile(file)).toEqual([second]);
  await expect(keys('revoke', String(first?.id))).rejects.toThrow('has no key');
});

test('commands in several processes at the same time lose no change', async () => {
  const [first] = await keys('create', '--workspace', 'first', '--scopes', 'query').then(() => readKeysFile(file));
  const main = fileURLToPath(new URL('../main.ts', import.meta.url));
  const run = (...args: string[]) => execute(process.execPath, [main, 'keys', ...args, '--file', file]);
  const names = ['a', 'b', 'c', 'd'];
  await Promise.all([
    run('revoke', String(first?.id)),
    ...names.map((name) => run('create', '--workspace', name, '--scopes', 'query')),
    ...names.map((name) => keys('create', '--workspace', `${name}-here`, '--scopes', 'query')),
  ]);
  const workspaces = (await readKeysFile(file)).map(({ workspace }) => workspace);
  expect(workspaces.sort()).toEqual(['a', 'a-here', 'b', 'b-here', 'c', 'c-here', 'd', 'd-here']);
  expect(await readdir(dirname(file))).toEqual(['keys.json']);
});

test('a command waits for another one, but not for one that was killed', async () => {
  await keys('create', '--workspace', 'a', '--scopes', 'query');
  await writeFile(`${file}.lock`, '');
  const waiting = keys('create', '--workspace', 'b', '--scopes', 'query');
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(await readKeysFile(file)).toHaveLength(1);
  await rm(`${file}.lock`);
  await waiting;
  expect(await readKeysFile(file)).toHaveLength(2);

  await writeFile(`${file}.lock`, '');
  const minuteAgo = new Date(Date.now() - 60_000);
  await utimes(`${file}.lock`, minuteAgo, minuteAgo);
  await keys('create', '--workspace', 'c', '--scopes', 'query');
  expect(await readKeysFile(file)).toHaveLength(3);
});

test('the error of a file that cannot be written says so', async () => {
  await writeFile(join(folder, 'no-folder'), '');
  const create = keys('create', '--workspace', 'a', '--scopes', 'query', '--file', 'no-folder/keys.json');
  await expect(create).rejects.toThrow(/^cannot be written \(E/);
});

test('--file is relative to the folder of the user', async () => {
  await keys('create', '--workspace', 'acme', '--scopes', 'query', '--file', 'other.json');
  expect(await readKeysFile(join(folder, 'other.json'))).toHaveLength(1);
  expect(await readKeysFile(file)).toEqual([]);
});

test.each([
  ['create', ['create', '--workspace', 'a', '--scopes', 'query']],
  ['list', ['list']],
  ['revoke', ['revoke', 'x']],
])('%s leaves a broken file as it is', async (_command, args) => {
  const broken = join(folder, 'broken.json');
  await writeFile(broken, '{"keys": [');
  await expect(keys(...args, '--file', broken)).rejects.toThrow('is not JSON');
  expect(await readFile(broken, 'utf8')).toBe('{"keys": [');
});

test.each([
  [[], /COMMAND is needed/],
  [['make'], /Unknown command "make"; use one of create, list, revoke/],
  [['create', '--workspace', 'acme'], /needs --scopes/],
  [['create', '--scopes', 'query'], /needs --workspace/],
  [['create', '--rate-limit', '0'], /needs --workspace\.\ncreate needs --scopes\.\n--rate-limit/],
  [['create', '--workspace', 'a b', '--scopes', 'query'], /--workspace must be/],
  [['create', '--workspace', 'a', '--scopes', 'query,write'], /Unknown scope "write"; use ingest, query, delete/],
  [['create', '--workspace', 'a', '--scopes', ''], /Unknown scope ""/],
  [['create', 'a', '--workspace', 'a', '--scopes', 'query'], /Unexpected argument "a"/],
  [['create', '--workspace', 'a', '--scopes', 'query', '--rate-limit', '0'], /--rate-limit must be/],
  [['create', '--workspace', 'a', '--scopes', 'query', '--rate-limit', '1e3'], /--rate-limit must be/],
  [['create', '--workspace', 'a', '--scopes', 'query', '--rate-limit', ''], /--rate-limit must be/],
  [['create', '--workspace', 'a', '--scopes', 'query', '--name', 'a\u001b[2J'], /--name must be 1 to 100 characters/],
  [['list', '--rate-limit', '1'], /can only be used with create/],
  [['list', 'x'], /Unexpected argument "x"/],
  [['list', '--workspace', 'a'], /can only be used with create/],
  [['revoke'], /one ID/],
  [['revoke', 'a', 'b'], /one ID/],
  [['list', '--nope'], /--nope/],
])('%j is refused', async (args, message) => {
  await expect(keys(...args)).rejects.toThrow(message);
  expect(await readKeysFile(file)).toEqual([]);
});
