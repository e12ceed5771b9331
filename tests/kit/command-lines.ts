import { readdir, readFile } from 'node:fs/promises';

/** Returns the command line of every process of this machine. Anybody on the machine can read them. */
export async function commandLines(): Promise<string[]> {
  const processes = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name));
  // A process may end meanwhile.
  return await Promise.all(processes.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')));
}
