import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { calledAs } from './command-line.ts';

test('help names the npm script in a checkout, and the file where there is no npm', () => {
  expect(calledAs('keys', '/sluice/scripts/keys.ts')).toBe('npm run keys --');
  expect(calledAs('keys', `${process.cwd()}/packages/shared/src/keys/main.ts`)).toBe(
    'node packages/shared/src/keys/main.ts',
  );
});

test('the keys command of a container names itself in its help and in its errors', async () => {
  const root = fileURLToPath(new URL('../../..', import.meta.url));
  const main = 'packages/shared/src/keys/main.ts';
  const { stdout } = await promisify(execFile)(process.execPath, [main, '--help'], { cwd: root });
  expect(stdout).toContain(`Usage: node ${main} COMMAND`);
  const failed = promisify(execFile)(process.execPath, [main, 'nonsense'], { cwd: root });
  await expect(failed).rejects.toMatchObject({ code: 2, stderr: expect.stringContaining(`node ${main} --help`) });
});
