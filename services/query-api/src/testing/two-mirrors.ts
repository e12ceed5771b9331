import { takeDatabase } from '@sluice/shared/clickhouse/testing/test-database';
import { inject, onTestFinished } from 'vitest';
import { type Mirror, type Mirrors, startMirrors } from './mirrors.ts';
import { anEvent } from './query-service.ts';

/**
 * Starts the app over two mirrors, until the test has finished; each has an event of its own, by which one sees which was read.
 *
 * @param database `createDatabase` for a test that changes tables
 */
export async function startTwoMirrors(
  env?: Readonly<Record<string, string>>,
  database = takeDatabase,
): Promise<Mirrors & { readonly a1: Mirror; readonly a2: Mirror }> {
  const service = await startMirrors(inject('clickhouseUrl'), ['a1', 'a2'], env, database);
  onTestFinished(() => service.stop());
  for (const { name, store } of service.mirrors) await store('a', [anEvent({ event: `of ${name}` })]);
  return service;
}

/** Returns the name of the mirror that a request has read, or the status of the response. */
export async function readBy({ get }: Mirrors, url = '/events?limit=1'): Promise<string> {
  const { status, body } = await get(url);
  return status === 200 ? String(body.results[0]?.['event']).slice('of '.length) : String(status);
}
