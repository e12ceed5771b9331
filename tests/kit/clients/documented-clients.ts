import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { Pipeline } from '../pipeline.ts';
import { callsIn, readRecording } from './recording.ts';

const DOCUMENT = join(import.meta.dirname, '../../../docs/design/clients.md');

/** A client whose recorded requests were sent and stored. */
export interface StoredClient {
  readonly name: string;
  readonly key: string;
  /** Where it sends calls. */
  readonly paths: readonly string[];
}

/** A row of the table of the document. */
interface Row {
  readonly client: string;
  readonly calls: number;
  readonly stored: number;
  readonly rejected: number;
}

/**
 * Expects that the table of docs/design/clients.md has exactly these clients, and counts what was sent, stored and rejected.
 *
 * @param isMeant whether a row is one of these clients
 */
export async function expectDocumented(
  pipeline: Pick<Pipeline, 'get'>,
  clients: readonly StoredClient[],
  isMeant: (name: string) => boolean,
): Promise<void> {
  const documented = rowsOf(await readFile(DOCUMENT, 'utf8')).filter(({ client }) => isMeant(client));
  const counted = await Promise.all(clients.map((client) => count(pipeline, client)));
  const byName = (rows: readonly Row[]) => rows.toSorted((a, b) => (a.client < b.client ? -1 : 1));
  expect(byName(documented)).toEqual(byName(counted));
}

async function count(pipeline: Pick<Pipeline, 'get'>, { name, key, paths }: StoredClient): Promise<Row> {
  const calls = (await readRecording(name)).filter((bytes) => {
    const [method, target = ''] = bytes.toString('latin1', 0, bytes.indexOf('\r\n')).split(' ');
    return method === 'POST' && paths.includes(target.split('?')[0] ?? '');
  });
  // What a client sends again is the same call. posthog-go has empty uuids.
  const sent = callsIn<{ readonly messageId?: string; readonly uuid?: string }>(calls);
  const ids = sent.map(({ messageId, uuid }, index) => messageId || uuid || index);
  const events = await pipeline.get<{ total: number }>('/events?limit=0', key);
  const rejected = await pipeline.get<{ results: unknown[] }>('/dead-letters?kind=rejected&limit=1000', key);
  return {
    client: name,
    calls: new Set(ids).size,
    stored: events.body.total,
    rejected: rejected.body.results.length,
  };
}

function rowsOf(document: string): Row[] {
  return [...document.matchAll(/^\| ([\w.-]+-\d[\w.-]*) +\| +(\d+) +\| +(\d+) +\| +(\d+) +\|$/gm)].map(
    ([, client = '', calls, stored, rejected]) => ({
      client,
      ...{ calls: Number(calls), stored: Number(stored), rejected: Number(rejected) },
    }),
  );
}
