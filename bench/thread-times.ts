import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';

const SAMPLE_MS = 100;

/** Sums the CPU time of the threads of a process and its children by their names, while it runs. */
export function sampleThreads(pid: number): { stop(): Promise<ReadonlyMap<string, number>> } {
  const byName = new Map<string, number>();
  const last = new Map<string, number>();
  let stopped = false;

  /** A thread has another name with each kind of work, so its time is added to the name that it has now. */
  async function sample(first: boolean): Promise<void> {
    for (const [tid, { name, ns }] of await threadsOf(pid)) {
      const spent = ns - (last.get(tid) ?? (first ? ns : 0));
      last.set(tid, ns);
      byName.set(name, (byName.get(name) ?? 0) + spent / 1_000);
    }
  }

  const sampling = (async () => {
    await sample(true);
    while (!stopped) {
      await delay(SAMPLE_MS);
      await sample(false);
    }
  })();
  return {
    async stop() {
      stopped = true;
      await sampling;
      return byName;
    },
  };
}

async function threadsOf(pid: number): Promise<Map<string, { name: string; ns: number }>> {
  const threads = new Map<string, { name: string; ns: number }>();
  const tids = await readdir(`/proc/${pid}/task`).catch(() => []);
  for (const tid of tids) {
    const read = (file: string) => readFile(`/proc/${pid}/task/${tid}/${file}`, 'utf8').catch(() => undefined);
    const [name, schedstat] = [await read('comm'), await read('schedstat')];
    if (name === undefined || schedstat === undefined) continue;
    threads.set(tid, { name: name.trim(), ns: Number(schedstat.split(' ')[0]) });
  }
  return threads;
}
