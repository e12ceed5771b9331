import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { expect, test } from 'vitest';
import { runImporter } from '../tests/support/importer.ts';

test.each(['sk_abc\ndef', 'sk_abc\n', 'sk abc', 'sk_ä'])(
  'a key that no header can carry is refused at once: %j',
  async (key) => {
    await using dir = await makeTempDir();
    const file = join(dir.path, 'lines.ndjson');
    await writeFile(file, '{"foreignUserGroupId":"acme"}\n');
    const { code, output } = await runImporter(['--url', 'http://127.0.0.1:1', file], key);
    expect(code).toBe(2);
    expect(output).toMatch(/^The key must be visible ASCII characters, without spaces and line feeds\.\n/);
  },
);

test('a folder, and a file that is not there, are wrong arguments', async () => {
  await using dir = await makeTempDir();
  const folder = await runImporter(['--url', 'http://127.0.0.1:1', dir.path], 'sk_abc');
  expect(folder.code).toBe(2);
  expect(folder.output).toContain(`${dir.path} is a folder`);
  const missing = await runImporter(['--url', 'http://127.0.0.1:1', join(dir.path, 'none')], 'sk_abc');
  expect(missing.code).toBe(2);
  expect(missing.output).toContain('no such file');
});
