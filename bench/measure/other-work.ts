import { readFile } from 'node:fs/promises';
import { cpuTimeUs, TICK_US } from './cpu-time.ts';

/** What took processors away from a benchmark, in cores on average. */
export interface OtherWork {
  /** Used by processes that are not of the benchmark. */
  readonly otherProcesses: number;
  /** Not given to this machine by its host. */
  readonly stolen: number;
}

interface Reading {
  readonly busyUs: number;
  readonly stolenUs: number;
  readonly ownUs: number;
  readonly atMs: number;
}

/** Measures what else the machine does while a benchmark runs. The processes of the benchmark must be children of this one. */
export class OtherWorkMeter {
  readonly #start: Reading;

  static async start(): Promise<OtherWorkMeter> {
    return new OtherWorkMeter(await read());
  }

  private constructor(start: Reading) {
    this.#start = start;
  }

  /** Call it when all processes of the benchmark have ended. */
  async read(): Promise<OtherWork> {
    const start = this.#start;
    const end = await read();
    const us = (end.atMs - start.atMs) * 1_000;
    const cores = (usedUs: number) => Math.max(0, Number((usedUs / us).toFixed(2)));
    return {
      otherProcesses: cores(end.busyUs - start.busyUs - (end.ownUs - start.ownUs)),
      stolen: cores(end.stolenUs - start.stolenUs),
    };
  }
}

async function read(): Promise<Reading> {
  const [line = ''] = (await readFile('/proc/stat', 'utf8')).split('\n');
  // proc_stat(5): the sums of all processors.
  const [user = 0, nice = 0, system = 0, , , , , stolen = 0] = line.split(/\s+/).slice(1).map(Number);
  return {
    busyUs: (user + nice + system) * TICK_US,
    stolenUs: stolen * TICK_US,
    ownUs: await cpuTimeUs(process.pid),
    atMs: performance.now(),
  };
}
