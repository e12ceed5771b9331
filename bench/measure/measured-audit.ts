import { readFile } from 'node:fs/promises';
import { sleep } from '@sluice/shared/base/retry';
import { type CommandEnd, startSluice } from '../../tests/kit/backups.ts';
import type { Pipeline } from '../../tests/kit/pipeline.ts';
import { cpuTimeUs } from './cpu-time.ts';

const WATCH_MS = 50;

/** How an audit ended, and what its process used. */
export interface MeasuredAudit extends CommandEnd {
  readonly ms: number;
  /** The most that it had in memory, in bytes. */
  readonly memory: number;
  readonly cpuUs: number;
}

/** Runs `sluice audit` of the last six hours. */
export async function measureAudit(
  pipeline: Pick<Pipeline, 'environment'>,
  ...args: readonly string[]
): Promise<MeasuredAudit> {
  const startedAt = performance.now();
  const { child, ended } = startSluice(pipeline, ['audit', '--since', '6h', ...args]);
  const pid = child.pid ?? 0;
  let [memory, cpuUs, isOver] = [0, 0, false];
  const watching = (async () => {
    while (!isOver) {
      const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
      memory = Math.max(memory, 1_024 * Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0));
      cpuUs = Math.max(cpuUs, await cpuTimeUs(pid).catch(() => 0));
      await sleep(WATCH_MS);
    }
  })();
  const end = await ended;
  const ms = performance.now() - startedAt;
  isOver = true;
  await watching;
  return { ...end, ms, memory, cpuUs };
}
