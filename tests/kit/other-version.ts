import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ADMINISTRATOR } from '@sluice/shared/clickhouse/testing/test-accounts';
import { THIS_CHECKOUT } from '@sluice/shared/testing/program-file';
import { ensureInstalled } from '../../scripts/installation.mjs';

const ACCOUNT = { ...ADMINISTRATOR, CLICKHOUSE_MIGRATE_USER: '', CLICKHOUSE_MIGRATE_PASSWORD: '' };

/** The services of an installation without the four accounts, which another version may not know. */
export const ONE_ACCOUNT = { writer: ACCOUNT, 'query-api': ACCOUNT };

const run = promisify(execFile);

/**
 * Returns a folder with the repository as it was at a commit, installed. It stays in `.cache/versions` for the next run.
 *
 * @throws Error when this clone does not have the commit
 */
export async function checkOutVersion(commit: string): Promise<string> {
  const git = (...args: string[]) => run('git', args, { cwd: THIS_CHECKOUT });
  const { stdout } = await git('rev-parse', '--verify', '--quiet', '--end-of-options', `${commit}^{commit}`).catch(
    () => {
      throw new Error(`this clone does not have the commit ${commit}; fetch it with: git fetch --unshallow`);
    },
  );
  const id = stdout.trim();
  const folder = join(THIS_CHECKOUT, '.cache/versions', id);
  const unfinished = `${folder}.part`;
  if (!existsSync(folder)) {
    await rm(unfinished, { recursive: true, force: true });
    await mkdir(unfinished, { recursive: true });
    await git('archive', '--format=tar', `--output=${unfinished}.tar`, id);
    await run('tar', ['-xf', `${unfinished}.tar`, '-C', unfinished]);
    await rm(`${unfinished}.tar`);
    await rename(unfinished, folder);
  }
  const node = await ensureInstalled(folder);
  // The first versions had no console to build.
  const build = 'packages/console/scripts/build.ts';
  if (existsSync(join(folder, build))) await run(node, [build], { cwd: folder });
  return folder;
}
