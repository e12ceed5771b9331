import { until } from '@sluice/shared/testing/until';
import { parseJson } from '@sluice/shared/text/json';
import { type Belongings, HOSTILE_SEGMENT, type HostileService } from './door.ts';

export interface BelongingsOptions {
  readonly urls: Readonly<Record<HostileService, string>>;
  readonly key: string;
  readonly adminKey: string;
  /** Where webhooks may send to. */
  readonly receiver: string;
}

type Shown = Readonly<Record<string, string>>;

/** Creates what the hostile tenant has: at least one of each that a route is about. */
export async function createBelongings({ urls, key, adminKey, receiver }: BelongingsOptions): Promise<Belongings> {
  const send = async (method: string, service: HostileService, path: string, body?: object, as = key) => {
    const response = await fetch(`${urls[service]}${path}`, {
      method,
      headers: { authorization: `Bearer ${as}`, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (response.ok) return text === '' ? {} : (parseJson(text) as Shown & { readonly results?: readonly Shown[] });
    throw new Error(`${method} ${path} was refused: ${response.status} ${text.slice(0, 500)}`);
  };
  const create = async (path: string, body: object) => await send('POST', 'query-api', path, body);
  const { id: view = '' } = await create('/views', { name: 'view', report: 'series', parameters: {} });
  await send('PUT', 'query-api', `/segments/${HOSTILE_SEGMENT}`, { of: 'users', behaviour: [{ did: 'e' }] });
  const { id: dashboard = '' } = await create('/dashboards', { name: 'dashboard', tiles: [{ view, width: 1 }] });
  const link = await create(`/dashboards/${dashboard}/links`, { name: 'link' });
  const { id: webhook = '' } = await create('/webhooks', { url: `${receiver}/slow`, batched: true });
  const silent = await create('/webhooks', { url: 'http://silent.example.:80/' });
  const url = `${receiver}/slow`;
  const watched = { name: 'alert', view, condition: { is: 'absent' }, window: '1m', url };
  const { id: alert = '' } = await create('/alerts', watched);
  const { id: digest = '' } = await create('/digests', { dashboard, hour: 0, url });
  const { workspaceId: workspace = '' } = await send(
    'POST',
    'trench-api',
    '/workspaces',
    { name: 'Hostile' },
    adminKey,
  );
  // A call that cannot be taken.
  await send('POST', 'ingest-api', '/v1/track', { userId: 'u' });
  const deadLetter = await until('the dead letter', async () => {
    const { results = [] } = await send('GET', 'query-api', '/dead-letters');
    return results[0]?.['id'];
  });
  return {
    ...{ key, adminKey, receiver, view, dashboard, webhook, alert, digest, workspace, deadLetter },
    ...{ link: link['id'] ?? '', linkKey: link['key'] ?? '', silentWebhook: silent['id'] ?? '' },
  };
}

/** Has the tenant's webhooks deliver, or stop. */
export async function setWebhooks(
  { urls, key }: Pick<BelongingsOptions, 'urls' | 'key'>,
  { webhook, silentWebhook }: Belongings,
  state: 'active' | 'paused',
): Promise<void> {
  for (const id of [webhook, silentWebhook]) {
    await until(`webhook ${id} to be ${state}`, async () => {
      const response = await fetch(`${urls['query-api']}/webhooks/${id}`, {
        method: 'PATCH',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ state }),
      });
      await response.arrayBuffer();
      return response.ok;
    });
  }
}
