import { mkdtemp, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Registry } from 'prom-client';
import { expect, onTestFinished, test } from 'vitest';
import { createLogger } from '../base/log.ts';
import { eventually } from '../testing/eventually.ts';
import { writeKeysFile } from './keys-file.ts';
import { createKeyRing } from './measured-key-ring.ts';

test('the metrics say how old the keys in force are, and whether the file can be used', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-keys-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const path = join(folder, 'keys.json');
  const registry = new Registry();
  const keys = createKeyRing(path, createLogger('test', 'silent'), registry);
  await keys.start();
  onTestFinished(() => keys.stop());
  const read = async (name: string) => (await registry.getSingleMetric(name)?.get())?.values[0]?.value;
  expect(await read('sluice_keys_file_valid')).toBe(0);
  expect(await read('sluice_keys_file_age_seconds')).toBeUndefined();

  await writeKeysFile(path, []);
  const hourAgo = new Date(Date.now() - 3_600_000);
  await utimes(path, hourAgo, hourAgo);
  await eventually(() => read('sluice_keys_file_valid')).toBe(1);
  await eventually(() => read('sluice_keys_file_age_seconds')).toBeGreaterThan(3_599);
  const { mtimeMs } = await stat(path);
  expect(keys.file).toEqual({ modifiedMs: mtimeMs, isValid: true });

  await writeFile(path, '{"keys": [');
  await eventually(() => read('sluice_keys_file_valid')).toBe(0);
  expect(keys.file).toEqual({ modifiedMs: mtimeMs, isValid: false });

  await writeKeysFile(path, []);
  await eventually(() => read('sluice_keys_file_valid')).toBe(1);
  expect(await read('sluice_keys_file_age_seconds')).toBeLessThan(3_599);
});
