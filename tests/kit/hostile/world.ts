import { until } from '@sluice/shared/testing/until';
import type { Pipeline } from '../pipeline.ts';
import { FLAVOURS, textOf } from './texts.ts';

const START_MS = Date.UTC(2026, 0, 1);
const HOUR_MS = 3_600_000;

const at = (hours: number) => new Date(START_MS + HOUR_MS * hours).toISOString();

/** Ordinary events, users and organizations, all of January 2026. */
function ordinarySubmissions(): object[] {
  return Array.from({ length: 50 }, (_, user) => ({
    foreignUserGroupId: `organization-${user % 10}`,
    foreignUserId: `user-${user}`,
    events: Array.from({ length: 40 }, (_unused, index) => ({
      event: ['signed_up', 'invited', 'paid'][index % 3],
      timestamp: at((user * 40 + index) % 720),
      properties: { plan: user % 2 === 0 ? 'pro' : 'free', amount: index },
    })),
  }));
}

/** What is expensive to list, sort, compare, escape and send back: stored before the queries of the hostile tenant. */
function* hostileSubmissions(): Generator<object> {
  for (const [number, flavour] of FLAVOURS.entries()) {
    const names = Array.from({ length: 40 }, (_, index) => textOf(flavour, 40, index + 1));
    yield {
      foreignUserGroupId: textOf(flavour, 512, 1),
      foreignUserId: textOf(flavour, 512, 2),
      events: names.map((event, index) => ({
        event,
        timestamp: at(number + index / 60),
        properties: {
          p: textOf(flavour, 600, index),
          "it's": event,
          n0: index,
          a: { b: { 'c.d': { e: { f: { g: index } } } } },
        },
        context: { [event]: flavour },
      })),
      properties: Object.fromEntries(
        Array.from({ length: 1_000 }, (_, index) => [textOf(flavour, 200, index + 1), index]),
      ),
    };
  }
  // One name of 120 kB around 9,000 short ones.
  const short = Object.fromEntries(Array.from({ length: 9_000 }, (_, index) => [`k${index}`, index]));
  for (let index = 0; index < 12; index += 1) {
    const properties = { [`${'n'.repeat(120_000)}${index}`]: short };
    yield { foreignUserGroupId: 'names', events: [{ event: 'names', timestamp: at(100 + index), properties }] };
  }
  // 900,000 names that differ at their ends, in no order: many times what a sample holds.
  for (let batch = 0; batch < 10; batch += 1) {
    const events = Array.from({ length: 10 }, (_, number) => {
      const first = (10 * batch + number) * 9_000;
      const ends = Array.from({ length: 9_000 }, (_unused, index) => ((first + index) * 2_654_435_761) % 2 ** 32);
      const properties = Object.fromEntries(ends.map((end) => [`equal-but-for-${end}`, 0]));
      return { event: 'near-equal', timestamp: at(600 + batch), properties };
    });
    yield { foreignUserGroupId: 'names', events };
  }
  // Events of up to 150 kB each: a page of them is a large response.
  for (let batch = 0; batch < 15; batch += 1) {
    const events = Array.from({ length: 20 }, (_, index) => ({
      event: 'long',
      timestamp: at(200 + batch * 20 + index),
      properties: { long: textOf(FLAVOURS[batch % FLAVOURS.length] ?? 'letters', 25_000, index).padEnd(30_000, 'x') },
    }));
    yield { foreignUserGroupId: 'long', foreignUserId: `long-${batch}`, events };
  }
}

async function submitAll(pipeline: Pipeline, key: string, submissions: Iterable<object>): Promise<number> {
  let total = 0;
  for (const submission of submissions) {
    const { status, body } = await pipeline.submit(submission, { key });
    if (status !== 202) throw new Error(`the world was refused: ${status} ${JSON.stringify(body).slice(0, 500)}`);
    total += (submission as { events: unknown[] }).events.length;
  }
  return total;
}

/** Stores what both tenants have before the first round, and waits until it is visible. */
export async function createWorld(
  pipeline: Pipeline,
  keys: { readonly hostile: string; readonly ordinary: string },
): Promise<void> {
  const totals = {
    hostile: await submitAll(pipeline, keys.hostile, hostileSubmissions()),
    ordinary: await submitAll(pipeline, keys.ordinary, ordinarySubmissions()),
  };
  for (const tenant of ['hostile', 'ordinary'] as const) {
    await until(`the events of the ${tenant} tenant`, async () => {
      const { body } = await pipeline.get<{ total: number }>('/events?limit=0', keys[tenant]);
      return body.total >= totals[tenant];
    });
  }
}
