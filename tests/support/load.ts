import { randomUUIDv7 } from 'node:crypto';
import { expect } from 'vitest';
import type { Pipeline } from './pipeline.ts';

export interface LoadOptions {
  readonly pipeline: Pipeline;
  /** Where to submit; requests go to each in turn. */
  readonly urls: () => readonly string[];
  readonly concurrency: number;
}

/** What became of each event that was submitted. */
export interface Tally {
  /** Uuids of events that were answered with 202. */
  readonly accepted: ReadonlySet<string>;
  /** Uuids of all events that were sent, whatever the answer. */
  readonly sent: ReadonlySet<string>;
  /** Answers that a client may not repeat, which there must be none of. */
  readonly refused: readonly string[];
}

/** A load that runs until it is stopped. */
export interface Load {
  acceptedSoFar(): number;
  stop(): Promise<Tally>;
}

/** A request that was not answered with 202 is sent again this often, as a client would. */
const ATTEMPTS = 5;

/** Submits events of a few organizations and users, each request until it is accepted or its attempts are used up. */
export function startLoad({ pipeline, urls, concurrency }: LoadOptions): Load {
  const accepted = new Set<string>();
  const sent = new Set<string>();
  const refused: string[] = [];
  let running = true;
  let turn = 0;

  async function attempt(body: string): Promise<boolean> {
    const targets = urls();
    const url = targets[turn++ % targets.length];
    try {
      const response = await fetch(`${url}/v1/public/userGroups`, {
        method: 'POST',
        body,
        headers: { authorization: `Bearer ${pipeline.key}`, 'content-type': 'application/json' },
      });
      const text = await response.text();
      if (response.status === 202) return true;
      if (response.status !== 503) refused.push(`${response.status} ${text}`);
      else expect(response.headers.get('retry-after')).toMatch(/^\d+$/);
    } catch {
      // A cut connection: whether the rows were kept is not known.
    }
    return false;
  }

  async function submit(): Promise<void> {
    const uuids = Array.from({ length: 5 }, () => randomUUIDv7());
    const events = uuids.map((uuid) => ({ event: 'load', uuid, properties: { uuid } }));
    const body = JSON.stringify({ foreignUserGroupId: `g${turn % 5}`, foreignUserId: `u${turn % 50}`, events });
    for (const uuid of uuids) sent.add(uuid);
    for (let attempts = 0; attempts < ATTEMPTS; attempts += 1) {
      if (await attempt(body)) {
        for (const uuid of uuids) accepted.add(uuid);
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }

  const workers = Array.from({ length: concurrency }, async () => {
    while (running) await submit();
  });
  return {
    acceptedSoFar: () => accepted.size,
    async stop() {
      running = false;
      await Promise.all(workers);
      return { accepted, sent, refused };
    },
  };
}

/** Every accepted event is stored once, nothing was invented, nothing refused that should not be. */
export async function expectExactlyOnce(pipeline: Pipeline, clickhouseUrl: string, tally: Tally): Promise<void> {
  expect(tally.refused).toEqual([]);
  const stored = async () => {
    const sql = `SELECT uuid FROM ${pipeline.database}.events WHERE event = 'load' FORMAT TSV`;
    const response = await fetch(clickhouseUrl, { method: 'POST', body: sql });
    return (await response.text()).trim().split('\n');
  };
  await expect
    .poll(async () => new Set(await stored()).isSupersetOf(tally.accepted), { timeout: 60_000, interval: 250 })
    .toBe(true);
  // What was not acknowledged may be stored, too, and may still be on its way.
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  const uuids = await stored();
  expect(uuids.length - new Set(uuids).size, 'doubled').toBe(0);
  expect(new Set(uuids).difference(tally.sent).size, 'invented').toBe(0);
}
