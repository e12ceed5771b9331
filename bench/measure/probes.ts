import { sleep } from '@sluice/shared/base/retry';
import { eventJson, subjectsOf } from '../data/event.ts';
import type { System } from '../processes/system.ts';

const POLL_MS = 10;

/** Default of the interval: the writer has stored a batch short before, as under a load. */
const PROBE_INTERVAL_MS = 200;

/** The interval with which each probe comes after quiet. */
export const QUIET_INTERVAL_MS = 1_500;

/** In milliseconds. */
export interface Probe {
  readonly acknowledged: number;
  /** From the response until `GET /events` returned the event. */
  readonly visible: number;
}

/**
 * Sends single events, one after the other, and times each.
 *
 * @param intervalMs so long after the last event was seen the next one is sent at least, with as much again at random
 */
export async function probe(
  system: System,
  durationMs: number,
  intervalMs: number = PROBE_INTERVAL_MS,
): Promise<readonly Probe[]> {
  const probes: Probe[] = [];
  let number = system.reserveNumbers(Math.ceil(durationMs / intervalMs));
  for (const endAt = performance.now() + durationMs; performance.now() < endAt; number += 1) {
    await sleep(intervalMs * (1 + Math.random()));
    probes.push(await probeOnce(system, number));
  }
  return probes;
}

async function probeOnce({ pipeline, tally }: System, number: number): Promise<Probe> {
  const { user, organization } = subjectsOf(number);
  const event = eventJson(number);
  const { uuid } = JSON.parse(event) as { uuid: string };
  const body = `{"foreignUserGroupId":"${organization}","foreignUserId":"${user}","events":[${event}]}`;
  const sentAt = performance.now();
  const { status } = await pipeline.submit(body);
  const acknowledgedAt = performance.now();
  tally.add({
    events: 1,
    numbersSum: String(number),
    fault: status === 202 ? undefined : `a probe got ${status}`,
  });
  for (;;) {
    const { body: found } = await pipeline.get<{ results: unknown[] }>(`/events?uuid=${uuid}&limit=1&total=none`);
    if (found.results.length > 0) break;
    await sleep(POLL_MS);
  }
  return { acknowledged: acknowledgedAt - sentAt, visible: performance.now() - acknowledgedAt };
}
