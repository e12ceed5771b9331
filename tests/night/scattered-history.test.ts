import { setTimeout as delay } from 'node:timers/promises';
import { until } from '@sluice/shared/testing/until';
import { expect, inject, test } from 'vitest';
import { startPipeline } from '../kit/pipeline.ts';
import { MONTHS, timestamps } from '../kit/scattered-history.ts';

/** In milliseconds. */
const DELAY_MS_MAX = 5_000;

/** On a machine too busy for that: as many times as long as an event takes to be visible there without history. */
const DELAY_RATIO_MAX = 8;

test('a submission of scattered history each second delays the events of others by less than five seconds', async () => {
  await using running = await startPipeline({
    kafkaBrokers: inject('kafkaBrokers'),
    clickhouseUrl: inject('clickhouseUrl'),
    name: 'scattered',
  });
  const other = await running.addKey('other');
  let days = 0;
  let submitted = 0;

  async function submitHistory(): Promise<void> {
    const events = timestamps(days++).map((ms) => ({ event: 'old', timestamp: new Date(ms).toISOString() }));
    expect((await running.submit({ foreignUserGroupId: 'history', events })).status).toBe(202);
  }

  /** How long after its 202 an event is visible, in milliseconds. */
  async function delayOfEvent(): Promise<number> {
    const event = `new ${submitted++}`;
    const body = { foreignUserGroupId: 'acme', events: [{ event }] };
    expect((await running.submit(body, { key: other })).status).toBe(202);
    const startedAt = performance.now();
    await until('the event to be visible', async () => {
      const path = `/events?event=${encodeURIComponent(event)}&total=none`;
      const { body: page } = await running.get<{ results: unknown[] }>(path, other);
      return page.results.length === 1;
    });
    return performance.now() - startedAt;
  }

  /** The longest delay of the events of some seconds, in milliseconds. */
  async function longestDelay(): Promise<number> {
    const startedAt = performance.now();
    const delaysMs: number[] = [];
    while (delaysMs.length < 5 || performance.now() - startedAt < 3_000) delaysMs.push(await delayOfEvent());
    return Math.max(...delaysMs);
  }

  /** The same while history is submitted each second. */
  async function longestDelayBesideHistory(): Promise<number> {
    let over = false;
    const history = (async () => {
      for (; !over; await delay(1_000)) await submitHistory();
    })();
    try {
      return await longestDelay();
    } finally {
      over = true;
      await history;
    }
  }

  await until('events beside history not to be late', async () => {
    const aloneMs = await longestDelay();
    const besideMs = await longestDelayBesideHistory();
    await running.settled(MONTHS * days);
    console.log(`visible after ${besideMs.toFixed(0)} ms beside scattered history, ${aloneMs.toFixed(0)} ms alone`);
    return besideMs < Math.max(DELAY_MS_MAX, DELAY_RATIO_MAX * aloneMs);
  });
});
