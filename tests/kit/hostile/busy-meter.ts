import { readdir, readFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';

/** Clock ticks a second, as Linux counts CPU time (`getconf CLK_TCK`). */
const TICKS_PER_SECOND = 100;

/** How much of the machine processes of others may use while a round is measured: more of it makes the round slow. */
const SHARE_MAX = 0.2;

interface Ticks {
  readonly atMs: number;
  readonly busy: number;
  readonly own: number;
}

/** Tells whether other processes of the machine took so much of it that how long something took says nothing. */
export class BusyMeter {
  #last: Ticks | undefined;

  /** Returns whether they did since the last call. */
  async take(): Promise<boolean> {
    const [last, now] = [this.#last, await readTicks()];
    this.#last = now;
    if (!last) return false;
    const capacity = (availableParallelism() * TICKS_PER_SECOND * (now.atMs - last.atMs)) / 1_000;
    return now.busy - last.busy - (now.own - last.own) > SHARE_MAX * capacity;
  }
}

async function readTicks(): Promise<Ticks> {
  const [all = ''] = (await readFile('/proc/stat', 'utf8')).split('\n');
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = all
    .trim()
    .split(/ +/)
    .slice(1)
    .map(Number);
  return { atMs: performance.now(), busy: user + nice + system + irq + softirq + steal, own: await ownTicks() };
}

/** The CPU time of this process and of all that descend from it. */
async function ownTicks(): Promise<number> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const found = new Map<number, { parent: number; ticks: number }>();
  for (const pid of pids) {
    const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
    // The name of a program may have spaces and brackets.
    const fields = text
      .slice(text.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number);
    found.set(Number(pid), { parent: fields[1] ?? 0, ticks: (fields[11] ?? 0) + (fields[12] ?? 0) });
  }
  const isOwn = (pid: number): boolean => pid === process.pid || (pid > 1 && isOwn(found.get(pid)?.parent ?? 0));
  return [...found].reduce((sum, [pid, { ticks }]) => sum + (isOwn(pid) ? ticks : 0), 0);
}
