import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';

const SAMPLE_MS = 100;

/** Sums the CPU time of the threads of a process by their names, while it runs. */
export class ThreadTimes {
  readonly #pid: number;
  readonly #usByName = new Map<string, number>();
  readonly #lastNs = new Map<string, number>();
  readonly #sampling: Promise<void>;
  #stopped = false;

  constructor(pid: number) {
    this.#pid = pid;
    this.#sampling = this.#run();
  }

  /** Returns the CPU time by the names of threads, in microseconds. */
  async stop(): Promise<ReadonlyMap<string, number>> {
    this.#stopped = true;
    await this.#sampling;
    return this.#usByName;
  }

  async #run(): Promise<void> {
    await this.#sample(true);
    while (!this.#stopped) {
      await delay(SAMPLE_MS);
      await this.#sample(false);
    }
  }

  /** A thread has another name with each kind of work, so its time is added to the name that it has now. */
  async #sample(first: boolean): Promise<void> {
    for (const [tid, { name, ns }] of await threadsOf(this.#pid)) {
      const spent = ns - (this.#lastNs.get(tid) ?? (first ? ns : 0));
      this.#lastNs.set(tid, ns);
      this.#usByName.set(name, (this.#usByName.get(name) ?? 0) + spent / 1_000);
    }
  }
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
