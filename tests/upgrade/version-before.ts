import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ensureInstalled } from '../../scripts/installation.mjs';
import { THIS_CHECKOUT } from '../support/service.ts';

const run = promisify(execFile);

/** The last commit of the version before this one. */
const VERSION_BEFORE = 'c59d9176c09a86c968a6d985ed209cab093e4d6f';

/**
 * Returns a folder with the repository as it was at a commit, installed. It stays in `.cache/versions` for the next run.
 *
 * @param commit default: the version before this one
 * @throws Error when this clone does not have the commit
 */
export async function checkOutVersion(commit = VERSION_BEFORE): Promise<string> {
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
  await run(node, ['packages/console/scripts/build.ts'], { cwd: folder });
  return folder;
}
