import { readdir, readFile, readlink } from 'node:fs/promises';
import { commandLineOf } from './command-line.ts';

export interface PortHolder {
  readonly pid: number;
  /** Its command line, the arguments separated by spaces. */
  readonly command: string;
}

const LISTEN = '0A';

/**
 * The process that listens on a TCP port of this machine, on any address. Undefined where it cannot be known: on
 * anything but Linux, and when the process belongs to another user.
 */
export async function findPortHolder(port: number): Promise<PortHolder | undefined> {
  const inodes = await inodesOfListeners(port);
  if (inodes.size === 0) return undefined;
  for (const entry of await readdir('/proc')) {
    const pid = Number(entry);
    if (!Number.isInteger(pid) || !(await hasSocket(pid, inodes))) continue;
    const command = await commandLineOf(pid);
    if (command !== undefined) return { pid, command };
  }
  return undefined;
}

/** The sockets in /proc/net/tcp: `sl local_address rem_address st … inode`, addresses as hex `address:port`. */
async function inodesOfListeners(port: number): Promise<ReadonlySet<string>> {
  const tables = ['/proc/net/tcp', '/proc/net/tcp6'].map((file) => readFile(file, 'utf8').catch(() => ''));
  const rows = (await Promise.all(tables)).flatMap((table) => table.split('\n').map((row) => row.trim().split(/\s+/)));
  const hexPort = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const listeners = rows.filter(([, local = '', , state]) => state === LISTEN && local.endsWith(hexPort));
  return new Set(listeners.map((row) => `socket:[${row[9]}]`));
}

async function hasSocket(pid: number, inodes: ReadonlySet<string>): Promise<boolean> {
  const folder = `/proc/${pid}/fd`;
  const descriptors = await readdir(folder).catch(() => []);
  const targets = await Promise.all(descriptors.map((name) => readlink(`${folder}/${name}`).catch(() => '')));
  return targets.some((target) => inodes.has(target));
}
