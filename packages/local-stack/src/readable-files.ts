import { dlopen, getRawPointer } from 'node:ffi';
import { closeSync, openSync } from 'node:fs';
import { arch, platform } from 'node:os';

// Landlock (Linux 5.19 or newer) limits a thread, and the threads that it starts, without privileges. The numbers of its calls are the
// same on all architectures.
const CREATE_RULESET = 444;
const ADD_RULE = 445;
const RESTRICT_SELF = 446;
const ASK_VERSION = 1;
/** The first that lets files be renamed into other folders. */
const VERSION_MIN = 2;
const RULE_PATH_BENEATH = 1;
const READ_FILE = 1n << 2n;
const REFER = 1n << 13n;
const PR_SET_NO_NEW_PRIVS = 38;
const O_PATH = 0o10000000;

/** What the C library, the resolver of names and TLS read, and what says how much memory and CPU there is. */
const OF_THE_SYSTEM = [
  ...['/lib', '/lib64', '/usr/lib', '/usr/lib64', '/usr/local/lib', '/usr/share', '/sys', '/proc/self', '/proc/sys'],
  ...[
    '/proc/cpuinfo',
    '/proc/loadavg',
    '/proc/meminfo',
    '/proc/stat',
    '/proc/uptime',
    '/proc/version',
    '/proc/mounts',
    '/proc/pressure',
  ],
  ...['/dev/full', '/dev/null', '/dev/random', '/dev/urandom', '/dev/zero', '/etc/ssl', '/etc/pki', '/etc/localtime'],
  ...['/etc/gai.conf', '/etc/host.conf', '/etc/hosts', '/etc/nsswitch.conf', '/etc/resolv.conf', '/etc/services'],
];

/**
 * Lets this thread, and those that it starts, read no files but those beneath the paths and the system's, for good. What is open stays
 * readable.
 *
 * @returns false where the system cannot do that: it is not Linux, or Landlock is off
 */
export function limitReadableFiles(paths: readonly string[]): boolean {
  // Elsewhere `int` and `long` are passed in other ways.
  if (platform() !== 'linux' || !['x64', 'arm64'].includes(arch())) return false;
  const { functions: libc } = dlopen(null, {
    syscall: { return: 'i64', arguments: ['i64', 'i64', 'i64', 'i64', 'i64'] },
    prctl: { return: 'i32', arguments: ['i64', 'i64', 'i64', 'i64', 'i64'] },
  });
  const call = (number: number, ...args: readonly (number | bigint)[]): number => {
    const [a = 0, b = 0, c = 0, d = 0] = args;
    return Number(libc.syscall(BigInt(number), BigInt(a), BigInt(b), BigInt(c), BigInt(d)));
  };
  if (call(CREATE_RULESET, 0, 0, ASK_VERSION) < VERSION_MIN) return false;
  const handled = new BigUint64Array([READ_FILE | REFER]);
  const ruleset = call(CREATE_RULESET, getRawPointer(handled), handled.byteLength, 0);
  if (ruleset < 0) return false;
  try {
    const allow = (rights: bigint, path: string): boolean => {
      const file = openPath(path);
      if (file === undefined) return true;
      // struct landlock_path_beneath_attr is packed.
      const rule = new DataView(new ArrayBuffer(12));
      rule.setBigUint64(0, rights, true);
      rule.setInt32(8, file, true);
      const added = call(ADD_RULE, ruleset, RULE_PATH_BENEATH, getRawPointer(rule.buffer), 0);
      // It stays open: the kernel forgets entries of /proc that nobody holds, and the rule with them.
      return added === 0;
    };
    return (
      allow(REFER, '/') &&
      [...OF_THE_SYSTEM, ...paths].every((path) => allow(READ_FILE, path)) &&
      libc.prctl(BigInt(PR_SET_NO_NEW_PRIVS), 1n, 0n, 0n, 0n) === 0 &&
      call(RESTRICT_SELF, ruleset, 0) === 0
    );
  } finally {
    closeSync(ruleset);
  }
}

/** @returns undefined where there is no such file */
function openPath(path: string): number | undefined {
  try {
    return openSync(path, O_PATH);
  } catch {
    return undefined;
  }
}
