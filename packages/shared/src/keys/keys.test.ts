import { readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createLogger } from '../base/log.ts';
import { eventually } from '../testing/eventually.ts';
import { withFileLock } from './file-lock.ts';
import { FileKeyRing, type KeyRing } from './key-ring.ts';
import {
  changeKeysFile,
  changeKeysFileContent,
  generateKey,
  hashKey,
  type KeyEntry,
  KeysFileChanges,
  parseKeysFile,
  readKeysFile,
  readKeysFileContent,
  writeKeysFile,
} from './keys-file.ts';

let folder: string;
let ring: KeyRing | undefined;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-keys-'));
});

afterEach(async () => {
  await ring?.stop();
  await rm(folder, { recursive: true });
});

function entry(key: string, workspace = 'acme'): KeyEntry {
  return { id: key, hash: hashKey(key), workspace, scopes: ['ingest'] };
}

test('a keys file keeps hashes, not keys', async () => {
  const path = join(folder, 'keys.json');
  const key = generateKey();
  await writeKeysFile(path, [{ ...entry(key), id: 'one' }]);
  expect(await readKeysFile(path)).toEqual([{ ...entry(key), id: 'one' }]);
  expect(JSON.stringify(await readKeysFile(path))).not.toContain(key);
  expect(await readKeysFile(join(folder, 'none.json'))).toEqual([]);
});

test('workspaces stay in the file when its keys are changed, and a file without any is as before', async () => {
  const path = join(folder, 'keys.json');
  await writeKeysFile(path, [entry('first')]);
  expect(JSON.parse(await readFile(path, 'utf8'))).toEqual({ keys: [entry('first')] });
  const workspace = {
    id: 'w',
    name: 'Acme',
    workspace: 'acme',
    isDefault: false,
    createdAt: '2026-03-01T12:00:00.000Z',
  };
  await changeKeysFileContent(path, ({ keys }) => ({ keys, workspaces: [workspace] }));
  await changeKeysFile(path, (keys) => [...keys, entry('second')]);
  expect(await readKeysFileContent(path)).toEqual({ keys: [entry('first'), entry('second')], workspaces: [workspace] });
});

test('what a change throws is thrown as it is, also with a code of its own', async () => {
  const path = join(folder, 'keys.json');
  const refusal = Object.assign(new Error('refused'), { code: 'not_found' });
  const change = changeKeysFile(path, () => {
    throw refusal;
  });
  await expect(change).rejects.toBe(refusal);
});

test('a revocation is in the first write after it, however many changes wait for the file before it', async () => {
  const path = join(folder, 'keys.json');
  await writeKeysFile(path, [entry('leaked')]);
  const before = await readFile(path, 'utf8');
  const changes = new KeysFileChanges(path);
  const create = (key: string) => changes.make((content) => ({ ...content, keys: [...content.keys, entry(key)] }));
  const names = Array.from({ length: 20 }, (_, index) => `created-${index}`);
  let written = '';
  const made = await withFileLock(path, async () => {
    const refused = changes.make(() => {
      throw new Error('refused');
    });
    const created = names.map(create);
    const revoked = changes.make((content) => {
      written = readFileSync(path, 'utf8');
      return { ...content, keys: content.keys.filter(({ id }) => id !== 'leaked') };
    });
    return { all: Promise.all([...created, revoked]), refused: expect(refused).rejects.toThrow('refused') };
  });
  await made.all;
  await made.refused;
  expect(written).toBe(before);
  expect((await readKeysFile(path)).map(({ id }) => id)).toEqual(names);
  await create('next');
  expect(await readKeysFile(path)).toHaveLength(21);
});

test('changes that cannot be written are all told so, and later ones are made', async () => {
  const path = join(folder, 'keys.json');
  await writeFile(path, '{');
  const changes = new KeysFileChanges(path);
  const make = () => changes.make((content) => ({ ...content, keys: [...content.keys, entry('k')] }));
  for (const one of [make(), make()]) await expect(one).rejects.toThrow('is not JSON');
  await writeKeysFile(path, []);
  await make();
  expect(await readKeysFile(path)).toHaveLength(1);
});

test('every error of a keys file is named', () => {
  const text = JSON.stringify({ keys: [{ id: '', hash: 'x', workspace: 'a b', scopes: ['root'], rateLimit: 0.5 }] });
  expect(() => parseKeysFile(text)).toThrow(
    /keys\.0\.id.*keys\.0\.hash.*keys\.0\.workspace.*keys\.0\.scopes.*keys\.0\.rateLimit/s,
  );
  expect(() => parseKeysFile('{')).toThrow('is not JSON');
});

test('a change is in force within a second, and a broken file leaves the last valid keys in force', async () => {
  const path = join(folder, 'keys.json');
  await writeKeysFile(path, [entry('first')]);
  ring = new FileKeyRing(path, createLogger('test', 'silent'));
  await ring.start();
  expect(ring.find('first')?.workspace).toBe('acme');
  expect(ring.find('second')).toBeUndefined();

  await writeKeysFile(path, [entry('second', 'other')]);
  await eventually(() => ring?.find('second')?.workspace, { interval: 20 }).toBe('other');
  expect(ring.find('first')).toBeUndefined();

  await writeFile(path, '{"keys": [');
  await new Promise((resolve) => setTimeout(resolve, 1_200));
  expect(ring.find('second')?.workspace).toBe('other');

  await writeKeysFile(path, [entry('third')]);
  await eventually(() => ring?.find('third'), { interval: 20 }).toBeDefined();
});
