import { setTimeout as delay } from 'node:timers/promises';
import { TooLate } from '@sluice/shared/testing/until';
import { parseJson } from '@sluice/shared/text/json';
import { expect } from 'vitest';
import { readClickHouse } from './clickhouse.ts';
import type { Pipeline } from './pipeline.ts';

export interface SubmitOptions {
  /** An ingest-api. */
  readonly url: string;
  readonly key: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Accepted {
  /** The uuids of the events, in their order in the response. */
  readonly uuids: readonly string[];
  /** How often it was sent. */
  readonly attempts: number;
}

/** How long {@link submitUntilAccepted} retries, in milliseconds. */
const PATIENCE_MS = 120_000;

/**
 * Sends a submission until it is accepted, as a client should: again after a 503, and after a connection that was refused
 * or cut.
 *
 * @throws {Error} when it gets another status, or a 503 without a whole number of seconds in `Retry-After`
 * @throws {TooLate} after two minutes
 */
export async function submitUntilAccepted(body: unknown, options: SubmitOptions): Promise<Accepted> {
  const { url, key, path = '/v1/public/userGroups', headers } = options;
  const deadline = Date.now() + PATIENCE_MS;
  for (let attempts = 1; ; attempts += 1) {
    const response = await fetch(`${url}${path}`, {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { ...headers, authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    }).catch(() => undefined);
    const text = await response?.text().catch(() => undefined);
    if (response?.status === 202 && text !== undefined) {
      const { events } = parseJson(text) as { events: { uuid: string }[] };
      return { uuids: events.map(({ uuid }) => uuid), attempts };
    }
    if (response && response.status !== 202) {
      expect(response.status, text).toBe(503);
      expect(response.headers.get('retry-after')).toMatch(/^\d+$/);
    }
    if (Date.now() > deadline) throw new TooLate('nothing but 503 for two minutes');
    await delay(50 + 150 * Math.random());
  }
}

/** Waits until `total` events are visible, and checks that the table has one row for each and no other. */
export async function expectStoredOnce(pipeline: Pipeline, clickhouseUrl: string, total: number): Promise<void> {
  await pipeline.settled(total);
  await pipeline.drained();
  const sql = `SELECT count(), uniqExact(workspace_id, timestamp, uuid) FROM ${pipeline.database}.events FORMAT TSV`;
  expect(await readClickHouse(clickhouseUrl, sql)).toBe(`${total}\t${total}`);
}
