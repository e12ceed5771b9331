import { randomUUID } from 'node:crypto';
import { sleep } from '@sluice/shared/base/retry';
import { readKeysFile } from '@sluice/shared/keys/keys-file';
import { shownPath } from '@sluice/shared/text/printable';
import { type Check, type Finding, note, ok, reasonOf, wrong } from './check.ts';
import type { DoctorConfig } from './config.ts';

/** How often it is looked whether an event is visible, in milliseconds. */
const POLL_MS = 100;

/** Returns what can be checked of the services where their addresses, their keys file and a key are known. */
export function serviceChecks(config: DoctorConfig): readonly Check[] {
  const { API_KEYS_FILE: path, INGEST_URL: ingest, QUERY_URL: query, WRITER_URL: writer, SLUICE_API_KEY: key } = config;
  const services = { 'ingest-api': ingest, 'query-api': query, writer };
  const ready = Object.entries(services).flatMap(([name, urls]): Check[] => {
    if (!urls) return [];
    const why = `${name} does no work while it is not ready, and says what it lacks.`;
    return [{ name: `${name}.ready`, why, run: (signal) => checkReady(urls, signal) }];
  });
  const [ingestUrl] = ingest ?? [];
  const [queryUrl] = query ?? [];
  return [
    ...(path === undefined
      ? []
      : [
          {
            name: 'keys',
            why: 'ingest-api and query-api know nobody without the keys file.',
            run: () => checkKeys(path),
          },
        ]),
    ...ready,
    ...(ingestUrl !== undefined && queryUrl !== undefined && key !== undefined
      ? [
          {
            name: 'delivery',
            why: 'What ingest-api accepts, query-api has to serve within seconds.',
            needs: ready.map(({ name }) => name),
            run: (signal: AbortSignal) => checkDelivery({ ingestUrl, queryUrl, key }, signal),
          },
        ]
      : []),
  ];
}

async function checkKeys(path: string): Promise<Finding> {
  try {
    const keys = await readKeysFile(path);
    if (keys.length > 0)
      return ok(`${keys.length} keys of ${new Set(keys.map(({ workspace }) => workspace)).size} workspaces`);
    return wrong(
      `${shownPath(path)} does not exist or has no keys`,
      'Create one: sluice keys create --workspace NAME --scopes ingest,query,delete.',
    );
  } catch (error) {
    return wrong(
      `${shownPath(path)} ${reasonOf(error)}`,
      'Give the service the file that sluice keys writes, readable by its user.',
    );
  }
}

async function checkReady(urls: readonly string[], signal: AbortSignal): Promise<Finding> {
  const findings = await Promise.all(
    urls.map(async (url): Promise<Finding> => {
      const { host } = new URL(url);
      try {
        const response = await fetch(new URL('/readyz', url), { signal });
        const said = (await response.json()) as { missing?: readonly string[]; warnings?: readonly string[] };
        if (!response.ok)
          return wrong(`${host}: ${said.missing?.join('; ') ?? response.status}`, 'Mend what it names.');
        if (said.warnings && said.warnings.length > 0)
          return note(`${host} is ready, and warns: ${said.warnings.join('; ')}`, 'Change what it names.');
        return ok(`${host} is ready`);
      } catch (error) {
        const reason = reasonOf((error as Error).cause ?? error);
        return wrong(`${host} cannot be reached: ${reason}`, 'See whether it runs, and check its address.');
      }
    }),
  );
  const worst = (['wrong', 'note', 'ok'] as const).find((state) => findings.some((one) => one.state === state)) ?? 'ok';
  const relevant = findings.filter(({ state }) => state === worst);
  const todo = relevant[0]?.todo;
  return { state: worst, found: relevant.map(({ found }) => found).join('; '), ...(todo !== undefined && { todo }) };
}

interface Delivery {
  readonly ingestUrl: string;
  readonly queryUrl: string;
  readonly key: string;
}

/** Sends an event of a user whom nobody else knows, waits until it is served, and deletes the user. */
async function checkDelivery({ ingestUrl, queryUrl, key }: Delivery, signal: AbortSignal): Promise<Finding> {
  const userId = `sluice-doctor-${randomUUID()}`;
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const remove = (init: { signal?: AbortSignal }) =>
    fetch(new URL(`/v1/users?foreignId=${userId}`, ingestUrl), { ...init, method: 'DELETE', headers });
  // Without the right to delete it, the event would remain: ask before it is sent.
  const allowed = await remove({ signal });
  if (!allowed.ok)
    return note(
      `not tried: ingest-api responds ${allowed.status} to a deletion with this key`,
      'Give SLUICE_API_KEY the scopes ingest, query and delete.',
    );
  const startedAt = performance.now();
  const body = JSON.stringify({ userId, event: 'sluice_doctor', messageId: userId });
  const sent = await fetch(new URL('/v1/track', ingestUrl), { method: 'POST', headers, body, signal });
  try {
    if (!sent.ok)
      return wrong(`ingest-api responds ${sent.status} to an event`, 'See its log, and the scopes of the key.');
    const acceptedMs = Math.round(performance.now() - startedAt);
    for (;;) {
      const response = await fetch(new URL(`/events?userId=${userId}&limit=1`, queryUrl), { headers, signal });
      if (!response.ok)
        return wrong(`query-api responds ${response.status} to a query`, 'See its log, and the scopes of the key.');
      const { results } = (await response.json()) as { readonly results: readonly unknown[] };
      if (results.length > 0) break;
      await sleep(POLL_MS, signal);
      signal.throwIfAborted();
    }
    return ok(`accepted in ${acceptedMs} ms, served after ${Math.round(performance.now() - startedAt)} ms`);
  } finally {
    await remove({});
  }
}
