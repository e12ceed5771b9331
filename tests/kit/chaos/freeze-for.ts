import { setTimeout as delay } from 'node:timers/promises';
import { freeze } from '../freeze.ts';

/** Freezes a process for so many milliseconds, at most until the signal aborts. */
export async function freezeFor(pid: number | undefined, lastsMs: number, signal: AbortSignal): Promise<void> {
  if (pid === undefined) return;
  const thaw = freeze(pid);
  await delay(lastsMs, undefined, { signal }).finally(thaw);
}
