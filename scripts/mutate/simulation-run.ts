import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';

/** A fault that makes a schedule hang counts as found. */
const TIMEOUT_MS = 15 * 60_000;

/** What came of schedules that were run one after the other. */
export interface SimulationResult {
  /** The one that failed, or the one after the last. */
  seed: number;
  violation: string | undefined;
  /** The time of a core that it took. */
  seconds: number;
}

export interface SimulationRun {
  readonly firstSeed: number;
  /** The time of a core. */
  readonly secondsMax: number;
  readonly schedulesMax: number;
  readonly signal: AbortSignal;
}

/** Runs schedules in a copy of the working tree, from a seed on, until one fails, or there were enough. */
export async function runSimulation(
  path: string,
  simulator: string,
  { firstSeed, secondsMax, schedulesMax, signal }: SimulationRun,
): Promise<SimulationResult> {
  // Libraries take more care, and more time, in tests.
  const { NODE_ENV: _testing, ...env } = process.env;
  const script = ['--disable-warning=ExperimentalWarning', 'scripts/mutate/try-seeds.ts'];
  const numbers = [secondsMax, firstSeed, schedulesMax].map(String);
  const child = spawn(process.execPath, [...script, simulator, ...numbers], {
    cwd: path,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
    killSignal: 'SIGKILL',
  });
  child.on('error', () => undefined);
  const closed = once(child, 'close').catch(() => [null]);
  const [out, errors] = await Promise.all([text(child.stdout), text(child.stderr), closed]);
  signal.throwIfAborted();
  const line = out.split('\n').at(-1) ?? '';
  if (line.startsWith('{')) return JSON.parse(line) as SimulationResult;
  const reason =
    errors
      .trim()
      .split('\n')
      .find((text) => /^\w*Error/.test(text)) ?? 'a schedule does not end';
  return { seed: firstSeed, violation: reason, seconds: 0 };
}
