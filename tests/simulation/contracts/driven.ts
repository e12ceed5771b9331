import type { VirtualTime } from '../world/virtual-time.ts';

/** How often nothing happens before it is clear that nothing ever will. */
const IDLE_TURNS_MAX = 1_000;

/**
 * Runs work that waits only for simulated servers, and moves their clock until it is done. The clock of this process stays
 * as it is, so that tests can do it.
 *
 * @throws what the work throws
 * @throws {Error} when it waits for something that will never happen
 */
export async function driven<Result>(time: VirtualTime, work: () => Promise<Result>): Promise<Result> {
  let isOver = false;
  const result = work().finally(() => {
    isOver = true;
  });
  result.catch(() => undefined);
  for (let idleTurns = 0; !isOver; idleTurns = time.nextAtMs === undefined ? idleTurns + 1 : 0) {
    if (idleTurns > IDLE_TURNS_MAX) throw new Error('the work waits for something that will never happen');
    await time.runUntil(time.nextAtMs ?? time.nowMs, () => isOver);
  }
  return await result;
}
