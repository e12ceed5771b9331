import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { inherited } from '@sluice/shared/testing/inherited';
import { expect, test } from 'vitest';
import manifest from '../package.json' with { type: 'json' };
import { COMMAND_NAMES } from './sluice.ts';

interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

const MAIN = join(import.meta.dirname, 'main.ts');

/** Runs sluice where nothing of Sluice runs: every address is refused. */
function sluice(args: readonly string[], env: Readonly<Record<string, string>> = {}, cwd = '/'): Promise<Outcome> {
  const nowhere = { CLICKHOUSE_URL: 'http://127.0.0.1:1', KAFKA_BROKERS: '127.0.0.1:1' };
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [MAIN, ...args],
      { env: { ...inherited(), ...nowhere, ...env }, cwd },
      (error, stdout, stderr) => {
        resolve({ code: error ? Number(error.code) : 0, stdout, stderr });
      },
    );
  });
}

test('--help lists all commands, each in a line', async () => {
  const [{ code, stdout }, help] = await Promise.all([sluice(['--help']), sluice(['help'])]);
  expect(code).toBe(0);
  for (const name of COMMAND_NAMES) expect(stdout).toMatch(new RegExp(`^  ${name} +[a-z].{20,}$`, 'm'));
  expect(help).toEqual({ code, stdout, stderr: '' });
});

test('--version shows the version', async () => {
  expect(await sluice(['--version'])).toEqual({ code: 0, stdout: `${manifest.version}\n`, stderr: '' });
});

test.each(COMMAND_NAMES)('%s shows how it is used without a system or a valid environment', async (name) => {
  const { code, stdout } = await sluice(['help', name], { CLICKHOUSE_URL: 'x', KAFKA_PARTITIONS: 'x' });
  expect(code).toBe(0);
  expect(stdout).toMatch(new RegExp(`^Usage: sluice ${name} `));
});

test('--help comes before every error of the arguments, and counts only among the options', async () => {
  const [help, before, behind] = await Promise.all([
    sluice(['help', 'import']),
    sluice(['import', '--nope', '-h']),
    sluice(['import', '--', '--help'], { SLUICE_API_KEY: 'sk_abc' }),
  ]);
  expect(before).toEqual(help);
  expect(behind).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("no such file or directory, stat '/--help'"),
  });
});

test.each(COMMAND_NAMES)('%s names an unknown option, and how to get help', async (name) => {
  const { code, stdout, stderr } = await sluice([name, '--nope']);
  expect([code, stdout]).toEqual([2, '']);
  expect(stderr).toContain('--nope');
  expect(stderr).toMatch(new RegExp(`\nsluice ${name} --help shows its usage\\.\n$`));
});

test('an npm script goes by its own name', async () => {
  const byNpm = { npm_lifecycle_event: 'keys' };
  const [help, wrong] = await Promise.all([sluice(['keys', '--help'], byNpm), sluice(['keys', 'make'], byNpm)]);
  expect(help.stdout).toMatch(/^Usage: npm run keys -- COMMAND/);
  expect(wrong.stderr).toMatch(/\nnpm run keys -- --help shows its usage\.\n$/);
});

const CHOICES = `use one of ${COMMAND_NAMES.join(', ')}`;

test.each([
  [[], `A COMMAND is needed; ${CHOICES}.`],
  [['nonsense'], `Unknown command "nonsense"; ${CHOICES}.`],
  [['help', 'nonsense'], `Unknown command "nonsense"; ${CHOICES}.`],
  [['help', 'keys', 'writer'], 'help shows how one command is used.'],
  [['--nope'], 'Unknown option "--nope".'],
])('%j is refused', async (args, message) => {
  const stderr = `${message}\nsluice --help shows its usage.\n`;
  expect(await sluice(args)).toEqual({ code: 2, stdout: '', stderr });
});

test('every error of the environment is named', async () => {
  const { code, stderr } = await sluice(['writer', 'status'], { CLICKHOUSE_URL: 'x', KAFKA_PARTITIONS: 'x' });
  expect(code).toBe(2);
  expect(stderr).toMatch(/KAFKA_PARTITIONS.*CLICKHOUSE_URL/s);
});

test.each([
  [[], 'is needed'],
  [['ftp://host/path'], 'must be a directory, or an address'],
  [['https://key:secret@host/bucket/path'], 'must be an address without credentials'],
  [['https://host/bucket/path?X-Amz-Signature=secret'], 'must be an address without credentials'],
  [['https://host/bucket'], 'must name a bucket and a path'],
  [['s3://bucket/'], 'must name a bucket and a path'],
])('backup and restore refuse the place %j', async (place, message) => {
  for (const [command, option] of [['backup', '--to'] as const, ['restore', '--from'] as const]) {
    const { code, stdout, stderr } = await sluice([command, ...place.flatMap((text) => [option, text])]);
    expect([code, stdout, stderr]).toEqual([2, '', expect.stringMatching(new RegExp(`^${option} ${message}`))]);
    expect(stderr).not.toContain('secret');
  }
});

test('one credential of S3 without the other one is refused', async () => {
  const { code, stderr } = await sluice(['backup', '--to', 's3://bucket/path'], { BACKUP_S3_ACCESS_KEY_ID: 'id' });
  expect([code, stderr]).toEqual([2, expect.stringContaining('BACKUP_S3_SECRET_ACCESS_KEY: must be set together')]);
});

test('wrong arguments are named before anything is connected to', async () => {
  const outcomes = await Promise.all([sluice(['dead-letters', 'show']), sluice(['writer', 'halt'])]);
  for (const outcome of outcomes) expect(outcome).toMatchObject({ code: 2, stdout: '' });
});

test('doctor knows three services, and needs the addresses of their engines', async () => {
  expect(await sluice(['doctor', 'kafka'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('Unknown service "kafka"; use some of ingest-api, writer, query-api.'),
  });
  const { code, stdout, stderr } = await sluice(['doctor'], {
    SERVICE: 'writer',
    KAFKA_BROKERS: '',
    CLICKHOUSE_URL: '',
  });
  expect([code, stdout]).toEqual([2, '']);
  expect(stderr).toMatch(/KAFKA_BROKERS: is required\n.*CLICKHOUSE_URL: is required/);
});

test('an operator is told when the system cannot be reached', async () => {
  for (const args of [
    ['dead-letters', 'list'],
    ['writer', 'status'],
    ['backup', '--to', '/backups/one'],
    ['restore', '--from', '/backups/one'],
  ]) {
    const { code, stderr } = await sluice(args);
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/cannot be reached .* Is Sluice running at .*127\.0\.0\.1:1\?/),
    ]);
  }
});

test('paths start in the folder of the person, also when npm runs the command in another one', async () => {
  await using dir = await makeTempDir();
  const folder = join(dir.path, 'folder');
  await mkdir(folder);
  await writeFile(join(folder, 'keys.json'), '{"keys":[]}');
  const list = ['keys', 'list', '--file', 'keys.json'];
  const stdout = `${join(folder, 'keys.json')} has no keys.\n`;
  expect(await sluice(list, {}, folder)).toMatchObject({ stdout });
  expect(await sluice(list, { npm_lifecycle_event: 'keys', INIT_CWD: folder })).toMatchObject({ stdout });
});

test('the defaults are those of npm start', async () => {
  await using dir = await makeTempDir();
  const { stdout } = await sluice(['keys', 'list'], { SLUICE_DATA_DIR: dir.path });
  expect(stdout).toBe(`${join(dir.path, 'keys.json')} has no keys.\n`);
  const local = { CLICKHOUSE_URL: '', CLICKHOUSE_PORT: '1' };
  expect((await sluice(['writer', 'status'], local)).stderr).toContain('Is Sluice running at 127.0.0.1:1?');
});
