import { Problem, RETRY_UNAVAILABLE_SECONDS } from '@sluice/shared/http/problem';
import type { QueryConfig } from '../../config.ts';

/** A writer waits for Kafka and for ClickHouse, each with retries. */
const TIMEOUT_MS = 60_000;

/**
 * Has a writer send a dead letter to Kafka again: the first one of REPLAY_URL that responds. To do it twice changes nothing, so a
 * request whose outcome is not known may be sent again.
 *
 * @throws {Problem} `replay_not_available` where no writer is known, or there are several ClickHouse servers, each of which
 * would have to know of it; `not_replayable`, with the reason; `store_unavailable` when it may not have been replayed
 */
export async function replayThrough(
  { REPLAY_URL: urls, CLICKHOUSE_SERVERS_FILE: servers }: Pick<QueryConfig, 'REPLAY_URL' | 'CLICKHOUSE_SERVERS_FILE'>,
  id: string,
): Promise<void> {
  if (!urls || servers !== undefined) {
    const detail = `This service cannot replay dead letters; the operator can, with "sluice dead-letters replay ${id}".`;
    throw new Problem('replay_not_available', detail);
  }
  for (const url of urls) {
    const response = await send(`${url.replace(/\/+$/, '')}/dead-letters/${encodeURIComponent(id)}/replay`);
    if (response?.status === 204) return;
    if (response?.status === 409) throw new Problem('not_replayable', String(Object(await response.json()).detail));
  }
  const detail = 'The dead letter could not be replayed now; send the request again, which never stores a row twice.';
  throw new Problem('store_unavailable', detail, { retryAfter: RETRY_UNAVAILABLE_SECONDS });
}

/** Returns the response of a writer with its body read; undefined without one. */
async function send(url: string): Promise<Response | undefined> {
  try {
    const response = await fetch(url, { method: 'POST', signal: AbortSignal.timeout(TIMEOUT_MS) });
    return new Response(response.status === 204 ? null : await response.text(), { status: response.status });
  } catch {
    return undefined;
  }
}
