import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { LocalClickHouse } from '@sluice/local-stack/clickhouse';
import { programFile } from '@sluice/shared/testing/program-file';
import { TooLate, until } from '@sluice/shared/testing/until';
import type { CommandEnd } from '../backups.ts';
import { freeze } from '../freeze.ts';
import type { Pipeline } from '../pipeline.ts';
import { type WipePlan, writersOf } from './schedule.ts';
import type { Slot } from './slots.ts';
import type { Surroundings } from './store.ts';

/** How long a copy may take, in milliseconds. */
const COPY_MS_MAX = 300_000;

export interface Filling {
  /** A mirror of the wiped server. */
  readonly from: string;
  /** The wiped server. */
  readonly to: string;
  readonly engine: LocalClickHouse;
  readonly plan: WipePlan;
  readonly surroundings: Surroundings;
}

/**
 * Fills a wiped server as an operator does: ends its writers, copies a mirror, and starts the writers again. The copy may be
 * broken off, and is run again then.
 */
export async function fillFromMirror(filling: Filling): Promise<void> {
  const { from, to, plan, surroundings } = filling;
  const { slots, signal, onProgress } = surroundings;
  const { writersEnd, frozenMs } = plan;
  await delay(plan.unnoticedMs, undefined, { signal });
  const writers = writersOf(to).map((name) => slots.get(name) as Slot);
  const copied = Promise.withResolvers<void>();
  for (const slot of writers) slot.down = copied.promise;
  try {
    const frozen = writersEnd === 'freeze' ? freezeAll(writers, frozenMs, signal) : undefined;
    if (writersEnd === 'stop') await Promise.all(writers.map(({ service }) => service.stop()));
    if (writersEnd === 'kill') await Promise.all(writers.map(({ service }) => service.kill9()));
    const runs = await copyUntilDone(filling, () => frozen?.isOver() ?? false);
    onProgress(`${to} is copied from ${from} by ${runs} runs of the command`);
  } finally {
    copied.resolve();
  }
}

/** Freezes writers, and returns whether they go on again. */
function freezeAll(writers: readonly Slot[], lastsMs: number, signal: AbortSignal): { isOver(): boolean } {
  const thaws = writers.map(({ service }) => freeze(service.pid));
  let over = false;
  void delay(lastsMs, undefined, { signal })
    .catch(() => undefined)
    .then(() => {
      over = true;
      for (const thaw of thaws) thaw();
    });
  return { isOver: () => over };
}

/**
 * Runs the command until it has copied everything, and returns how often that was.
 *
 * @param isThawed whether writers that were frozen may be members of their group again
 * @throws {TooLate}
 */
async function copyUntilDone(
  { from, to, engine, plan, surroundings: { pipeline, slots, signal, onProgress } }: Filling,
  isThawed: () => boolean,
): Promise<number> {
  const deadline = performance.now() + COPY_MS_MAX;
  for (let run = 1; ; run += 1) {
    const copy = startCopy(pipeline, from, to);
    const tooLate = setTimeout(() => copy.child.kill('SIGKILL'), deadline - performance.now());
    if (run === 1 && plan.killed !== 'nothing') {
      await until('the copy to be under way', async () => copy.output().includes(plan.killedAfter) || copy.hasEnded());
      if (plan.killed === 'the command') copy.child.kill('SIGKILL');
      else {
        await engine.kill9();
        await engine.restart();
      }
    }
    const { code, output } = await copy.ended;
    clearTimeout(tooLate);
    if (code === 0) return run;
    if (performance.now() > deadline) throw new TooLate(`${to} was not copied. The last run printed:\n${output}`);
    onProgress(`the copy to ${to} ended with ${code}: ${output.trim().split('\n').slice(-2).join(' ')}`);
    if (isThawed()) for (const name of writersOf(to)) await slots.get(name)?.service.kill9();
    await delay(1_000, undefined, { signal });
  }
}

function startCopy({ environment }: Pick<Pipeline, 'environment'>, from: string, to: string) {
  const child: ChildProcess = spawn(
    process.execPath,
    [programFile('sluice'), 'servers', 'copy', '--from', from, '--to', to, '--yes'],
    { env: { PATH: process.env['PATH'], ...environment }, stdio: ['ignore', 'pipe', 'pipe'] },
  );
  let output = '';
  let hasEnded = false;
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text) => {
      output += text;
    });
  }
  const ended = once(child, 'close').then(([code]): CommandEnd => {
    hasEnded = true;
    return { code: code ?? -1, output };
  });
  return { child, ended, output: () => output, hasEnded: () => hasEnded };
}
