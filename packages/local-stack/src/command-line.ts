import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';

/**
 * The command line of a process, its arguments separated by spaces; `undefined` when there is no such process.
 * Characters beyond ASCII may be changed.
 */
export async function commandLineOf(pid: number): Promise<string | undefined> {
  if (process.platform === 'linux') {
    // Small images have no ps.
    const text = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    return text.replaceAll('\0', ' ').trim() || undefined;
  }
  const found = await promisify(execFile)('ps', ['-ww', '-o', 'args=', '-p', String(pid)]).catch(() => undefined);
  return found?.stdout.trim() || undefined;
}
