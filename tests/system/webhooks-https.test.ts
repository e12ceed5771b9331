import { writeFile } from 'node:fs/promises';
import { findFreePorts } from '@sluice/local-stack/ports';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { Receiver, WEBHOOKS_ENV } from '@sluice/query-api/testing/webhooks';
import { QUERY_ACCOUNT } from '@sluice/shared/clickhouse/testing/test-accounts';
import { createDatabase } from '@sluice/shared/clickhouse/testing/test-database';
import { hashKey, writeKeysFile } from '@sluice/shared/keys/keys-file';
import { createAuthority } from '@sluice/shared/tls/testing/certificates';
import { expect, inject, test } from 'vitest';
import { startService } from '../kit/service.ts';

const KEY = 'manages-webhooks';

test('a receiver whose certificate nobody knows is refused, and the log says why; NODE_EXTRA_CA_CERTS adds its authority', async () => {
  await using started = new AsyncDisposableStack();
  const folder = started.use(await makeTempDir()).path;
  const database = await createDatabase(inject('clickhouseUrl'));
  started.defer(() => database.release());
  const authority = await createAuthority();
  await writeFile(`${folder}/authority.pem`, authority.cert);
  const keysFile = `${folder}/keys.json`;
  await writeKeysFile(keysFile, [{ id: 'w', hash: hashKey(KEY), workspace: 'a', scopes: ['webhooks'] }]);
  const receiver = started.use(await Receiver.startSecure(await authority.issue()));
  const { CLICKHOUSE_URL, CLICKHOUSE_DATABASE } = database.config;
  const env = {
    ...{ CLICKHOUSE_URL, CLICKHOUSE_DATABASE, API_KEYS_FILE: keysFile },
    ...{ ...QUERY_ACCOUNT, ...WEBHOOKS_ENV, WEBHOOK_DELIVERY: 'false' },
  };
  const [port = 0, trustingPort = 0] = await findFreePorts(2);
  const one = startService('query-api', port, env);
  started.defer(() => one.kill9());
  const added = { NODE_EXTRA_CA_CERTS: `${folder}/authority.pem` };
  const trusting = startService('query-api', trustingPort, { ...env, ...added });
  started.defer(() => trusting.kill9());
  await Promise.all([one.ready(), trusting.ready()]);

  async function request<Body>(url: string, method: 'GET' | 'POST', payload?: object): Promise<Body> {
    const headers = { authorization: `Bearer ${KEY}`, ...(payload && { 'content-type': 'application/json' }) };
    const response = await fetch(url, { method, headers, ...(payload && { body: JSON.stringify(payload) }) });
    return (await response.json()) as Body;
  }

  const { id } = await request<{ id: string }>(`${one.url}/webhooks`, 'POST', { url: receiver.url });
  const reason = /^the certificate of the receiver is not accepted: /;
  expect(await request(`${one.url}/webhooks/${id}/test`, 'POST')).toMatchObject({
    ...{ delivered: false, status: null, error: expect.stringMatching(reason) },
  });
  expect(receiver.received).toEqual([]);
  // The instance that was refused stores what its log has when it stops.
  expect(await one.stop()).toBe(0);
  const { deliveries } = await request<{ deliveries: object[] }>(`${trusting.url}/webhooks/${id}/deliveries`, 'GET');
  expect(deliveries).toContainEqual(expect.objectContaining({ type: 'test', error: expect.stringMatching(reason) }));
  expect(await request(`${trusting.url}/webhooks/${id}/test`, 'POST')).toMatchObject({ delivered: true, status: 204 });
  expect(receiver.received).toHaveLength(1);
});
