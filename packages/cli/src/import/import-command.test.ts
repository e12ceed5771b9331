import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { ArgumentsError } from '@sluice/shared/config/command-line';
import { expect, test } from 'vitest';
import { importCommand } from './import-command.ts';

const run = (file: string, cwd: string, key = 'sk_abc') =>
  importCommand.run(['--url', 'http://127.0.0.1:1', file], { env: { SLUICE_API_KEY: key }, cwd });

test.each(['sk_abc\ndef', 'sk_abc\n', 'sk abc', 'sk_ä'])(
  'a key that no header can carry is refused at once: %j',
  async (key) => {
    await using dir = await makeTempDir();
    await writeFile(join(dir.path, 'lines.ndjson'), '{"foreignUserGroupId":"acme"}\n');
    await expect(run('lines.ndjson', dir.path, key)).rejects.toThrow(
      new ArgumentsError('The key must be visible ASCII characters, without spaces and line feeds.'),
    );
  },
);

test('a folder, and a file that is not there, are wrong arguments', async () => {
  await using dir = await makeTempDir();
  await expect(run('.', dir.path)).rejects.toThrow(`${dir.path} is a folder`);
  await expect(run('none', dir.path)).rejects.toThrow('no such file');
});

test('a file of another format is a wrong argument, which says the right one', async () => {
  await using dir = await makeTempDir();
  await writeFile(join(dir.path, 'events.ndjson'), '{"complete":true,"events":0}\n');
  await expect(run('events.ndjson', dir.path)).rejects.toThrow(
    new ArgumentsError(
      'Line 1 is a line of an export of Sluice, and not what --format native means: it can be imported with --format export. Nothing was sent.',
    ),
  );
});
