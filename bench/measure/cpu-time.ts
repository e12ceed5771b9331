import { readdir, readFile } from 'node:fs/promises';

/** The unit of CPU time in /proc: a hundredth of a second on every architecture of Node.js. */
export const TICK_US = 10_000;

interface ProcessStat {
  readonly pid: number;
  readonly parentPid: number;
  readonly ticks: number;
}

/**
 * The CPU time, user and system, that a process and all its descendants have used so far, with their threads and ended
 * children: in microseconds, to a hundredth of a second (proc_pid_stat(5)).
 */
export async function cpuTimeUs(pid: number): Promise<number> {
  const stats = await readStats();
  const childrenOf = Map.groupBy(stats, ({ parentPid }) => parentPid);
  const own = stats.filter((stat) => stat.pid === pid);
  if (own.length === 0) throw new Error(`process ${pid} has ended`);
  let ticks = 0;
  for (const open = [...own]; open.length > 0; ) {
    const stat = open.pop() as ProcessStat;
    ticks += stat.ticks;
    open.push(...(childrenOf.get(stat.pid) ?? []));
  }
  return ticks * TICK_US;
}

/** Returns the memory that a process has in RAM now, in bytes. */
export async function residentBytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1_024;
}

/** What each process has used between two readings. */
export function difference(
  before: Readonly<Record<string, number>>,
  after: Readonly<Record<string, number>>,
): Record<string, number> {
  return Object.fromEntries(Object.entries(after).map(([name, value]) => [name, value - (before[name] ?? 0)]));
}

/** What all processes have used together. */
export function together(used: Readonly<Record<string, number>>): number {
  return Object.values(used).reduce((sum, us) => sum + us, 0);
}

async function readStats(): Promise<ProcessStat[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const texts = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')));
  return texts.filter((text) => text !== '').map(parseStat);
}

/** The command is in parentheses and may contain anything, so fields are counted from the last parenthesis. */
function parseStat(text: string): ProcessStat {
  const [, parentPid, ...rest] = text.slice(text.lastIndexOf(')') + 2).split(' ');
  // utime, stime, cutime and cstime are fields 14 to 17; `rest` begins with field 5.
  const ticks = rest.slice(9, 13).reduce((sum, field) => sum + Number(field), 0);
  return { pid: Number.parseInt(text, 10), parentPid: Number(parentPid), ticks };
}
