import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, open, rm, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { systemErrorCode } from '@sluice/local-stack/errors';

/** A file system of a few megabytes in a mount namespace of its own. It ends when this process ends. */
export interface SmallDisk extends AsyncDisposable {
  /** A path to its root from outside. */
  readonly path: string;
  /** A command prefix that runs a command where the disk is mounted. */
  readonly enter: readonly string[];
  /** Fills it up to `leave` bytes. Default 0. */
  fill(leave?: number): Promise<void>;
  /** Frees what {@link SmallDisk.fill} has taken. */
  free(): Promise<void>;
  /** Gives it another size. It may be larger than this machine's memory, as long as little is written to it. */
  resize(megabytes: number): Promise<void>;
}

const MISSING =
  'A small disk needs Linux with `unshare` and `nsenter` (package util-linux) and user namespaces: ' +
  'run as root, or see that `sysctl user.max_user_namespaces` is not 0 and that neither ' +
  '`kernel.unprivileged_userns_clone` nor `kernel.apparmor_restrict_unprivileged_userns` forbids them; ' +
  'in a container, its security profile has to allow them.';

const PAGE = Buffer.alloc(4_096);

/** Creates a folder, and mounts a disk in memory on it, in a mount namespace of its own. */
export async function mountSmallDisk(mountPoint: string, megabytes: number): Promise<SmallDisk> {
  await mkdir(mountPoint, { recursive: true });
  const script = 'mount -t tmpfs -o "size=$1m" tmpfs "$0" && echo mounted && exec cat';
  // Holds the namespace until its input ends.
  const holder = spawn('unshare', ['-Urm', 'sh', '-c', script, mountPoint, String(megabytes)]);
  const ended = once(holder, 'close');
  await mounted(holder, ended);
  const path = join(`/proc/${holder.pid}/root`, mountPoint);
  const ballast = join(path, 'ballast');
  const enter = ['nsenter', '--target', String(holder.pid), '--user', '--mount', '--preserve-credentials'];

  return {
    path,
    enter,
    async fill(leave = 0) {
      const { bavail, bsize } = await statfs(path);
      await using file = await open(ballast, 'a');
      try {
        // Page by page to the very end, as others may be writing.
        for (let left = bavail * bsize - leave; leave === 0 || left > 0; left -= PAGE.length)
          await file.appendFile(PAGE);
      } catch (error) {
        if (systemErrorCode(error) !== 'ENOSPC') throw error;
      }
    },
    free: () => rm(ballast),
    async resize(size) {
      const [program = '', ...args] = [...enter, 'mount', '-o', `remount,size=${size}m`, mountPoint];
      await promisify(execFile)(program, args);
    },
    async [Symbol.asyncDispose]() {
      holder.stdin.end();
      await ended;
    },
  };
}

async function mounted(holder: ChildProcess, ended: Promise<unknown>): Promise<void> {
  let output = '';
  holder.stderr?.on('data', (text) => {
    output += text;
  });
  const outcome = await Promise.race([
    once(holder.stdout as NodeJS.ReadableStream, 'data').then(() => 'mounted'),
    ended.catch((error: Error) => {
      output += error.message;
    }),
  ]);
  if (outcome !== 'mounted') throw new Error(`${MISSING}\n${output}`);
}
