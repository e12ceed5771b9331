import { until } from '@sluice/shared/testing/until';
import { anEvent, type QueryService } from './query-service.ts';
import { send } from './views.ts';
import { manage, type Received, type WebhookResponse } from './webhooks.ts';

/** Says that all of the log is stored, now and for an hour, as the writers do. */
export async function storeWholeLog({ clickHouse }: Pick<QueryService, 'clickHouse'>): Promise<void> {
  await clickHouse.command({
    query: 'INSERT INTO storing_progress SELECT now64(3) + toIntervalHour(1), now64(3), 0',
  });
}

const HOUR_MS = 3_600_000;

/** Stores events of yesterday, whichever time it is in UTC. */
export async function storeYesterday(
  query: Pick<QueryService, 'store'>,
  workspace: string,
  event: string,
  count: number,
): Promise<void> {
  const timestampMs = Math.floor(Date.now() / (24 * HOUR_MS)) * 24 * HOUR_MS - 12 * HOUR_MS;
  await query.store(
    workspace,
    Array.from({ length: count }, () => anEvent({ timestampMs, event })),
  );
}

/** Saves a view of the events of a name, and returns its id. */
export async function saveView(
  query: Pick<QueryService, 'app'>,
  workspace: string,
  event: string,
  parameters: Readonly<Record<string, string>> = {},
): Promise<string> {
  const view = { name: `View of ${event}`, report: 'series', parameters: { event, ...parameters } };
  return (await send(query, 'POST', '/views', view, workspace)).body.id;
}

/** Creates an alert, and returns its path. */
export async function createAlert(
  query: Pick<QueryService, 'app'>,
  workspace: string,
  given: object,
): Promise<WebhookResponse['body'] & { readonly path: string }> {
  const alert = { name: 'Alert', window: '1d', condition: { is: 'above', threshold: 2 }, ...given };
  const { status, body } = await manage(query, 'POST', '/alerts', alert, workspace);
  if (status !== 201) throw new Error(`the alert was not created: ${status} ${JSON.stringify(body)}`);
  return { ...body, path: `/alerts/${body.id}` };
}

/** Waits until an alert or a digest has a status. */
export async function untilStatus(
  query: Pick<QueryService, 'app'>,
  workspace: string,
  path: string,
  status: string,
): Promise<WebhookResponse['body']> {
  const read = async () => (await manage(query, 'GET', path, undefined, workspace)).body;
  await until(`the status ${status}`, async () => (await read())['status'] === status);
  return await read();
}

/** What a message says. */
export function dataOf({ body }: Received): Readonly<Record<string, unknown>> {
  return (JSON.parse(body) as { readonly data: Record<string, unknown> }).data;
}
