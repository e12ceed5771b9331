import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { generateKey, hashKey, parseKeysFile, readKeysFile, writeKeysFile } from '@sluice/shared/keys/keys-file';
import { expect, test } from 'vitest';
import { ensureClickHousePasswords, ensureDevKey, lockDataFolder, unlockDataFolder } from './data-folder.ts';

const OWN_MARK = process.execPath;

test('one run at a time holds the lock of a data folder', async () => {
  await using dir = await makeTempDir();
  expect(await lockDataFolder(dir.path, OWN_MARK)).toBeUndefined();
  expect(await lockDataFolder(dir.path, OWN_MARK)).toBe(process.pid);
  await unlockDataFolder(dir.path);
  expect(await lockDataFolder(dir.path, OWN_MARK)).toBeUndefined();
});

test.each(['2147483647', '', 'nonsense'])('a lock that holds "%s" is taken over', async (content) => {
  await using dir = await makeTempDir();
  await writeFile(join(dir.path, 'lock'), content);
  expect(await lockDataFolder(dir.path, OWN_MARK)).toBeUndefined();
  expect(await readFile(join(dir.path, 'lock'), 'utf8')).toBe(`${process.pid}\n`);
});

test('a lock whose process id belongs to another program now is taken over', async () => {
  await using dir = await makeTempDir();
  await writeFile(join(dir.path, 'lock'), `${process.pid}\n`);
  expect(await lockDataFolder(dir.path, 'scripts/start.ts')).toBeUndefined();
});

test('the development key is created once, in a file that only its owner can read', async () => {
  await using dir = await makeTempDir();
  const first = await ensureDevKey(dir.path, undefined);
  const second = await ensureDevKey(dir.path, undefined);
  expect(second).toEqual(first);
  const [entry, ...others] = parseKeysFile(await readFile(first.keysFile, 'utf8'));
  expect(others).toEqual([]);
  expect(entry).toMatchObject({ id: 'dev', hash: hashKey(first.key), workspace: 'local' });
  expect(entry?.scopes).toEqual(['ingest', 'query', 'delete', 'sql', 'webhooks', 'admin']);
  for (const file of ['dev-key', 'keys.json']) expect((await stat(join(dir.path, file))).mode & 0o777).toBe(0o600);
});

test('the development key of an older version gets the scopes that are new', async () => {
  await using dir = await makeTempDir();
  const { key, keysFile } = await ensureDevKey(dir.path, undefined);
  const entry = { id: 'dev', hash: hashKey(key), workspace: 'local', scopes: ['ingest' as const, 'query' as const] };
  await writeKeysFile(keysFile, [entry]);
  expect(await ensureDevKey(dir.path, undefined)).toEqual({ key, keysFile });
  expect((await readKeysFile(keysFile)).map(({ scopes }) => scopes)).toEqual([
    ['ingest', 'query', 'delete', 'sql', 'webhooks', 'admin'],
  ]);
});

test('a chosen development key replaces the last one, and other entries stay', async () => {
  await using dir = await makeTempDir();
  const { keysFile } = await ensureDevKey(dir.path, undefined);
  const other = { id: 'acme', hash: hashKey(generateKey()), workspace: 'acme', scopes: ['ingest' as const] };
  await writeKeysFile(keysFile, [...(await readKeysFile(keysFile)), other]);
  await ensureDevKey(dir.path, 'a key of my own choice'.replaceAll(' ', '-'));
  const entries = await readKeysFile(keysFile);
  expect(entries).toHaveLength(2);
  expect(entries).toContainEqual(other);
  expect(entries.find(({ id }) => id === 'dev')?.hash).toBe(hashKey('a-key-of-my-own-choice'));
});

test('the passwords of the local ClickHouse are created once', async () => {
  await using dir = await makeTempDir();
  const passwords = await ensureClickHousePasswords(dir.path);
  const all = [passwords.administrator, ...Object.values(passwords.accounts), passwords.sql];
  expect(new Set(all).size).toBe(6);
  for (const password of all) expect(password).toHaveLength(32);
  expect(await ensureClickHousePasswords(dir.path)).toEqual(passwords);
});
