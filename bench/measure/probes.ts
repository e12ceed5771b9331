import { sleep } from '@sluice/shared/retry';
import { eventJson, subjectsOf } from '../data/event.ts';
import type { System } from '../processes/system.ts';

const POLL_MS = 10;

/** So long after the last event was seen the next one is sent at least, in milliseconds, with as much again at random. */
const PROBE_INTERVAL_MS = 200;

/** In milliseconds. */
export interface Probe {
  readonly acknowledged: number;
  /** From the response until `GET /events` returned the event. */
  readonly visible: number;
}

/** Sends single events, one after the other, and times each. */
export async function probe(system: System, durationMs: number): Promise<readonly Probe[]> {
  const probes: Probe[] = [];
  let number = system.reserveNumbers(Math.ceil(durationMs / PROBE_INTERVAL_MS));
  for (const endAt = performance.now() + durationMs; performance.now() < endAt; number += 1) {
    await sleep(PROBE_INTERVAL_MS * (1 + Math.random()));
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
