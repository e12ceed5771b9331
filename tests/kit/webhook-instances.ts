import { findFreePorts } from '@sluice/local-stack/ports';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { administratorOf, anEvent, insertInto, type TestEvent } from '@sluice/query-api/testing/query-service';
import { accept, type Behaviour, Receiver, WEBHOOKS_ENV } from '@sluice/query-api/testing/webhooks';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { QUERY_ACCOUNT } from '@sluice/shared/clickhouse/testing/test-accounts';
import { createDatabase } from '@sluice/shared/clickhouse/testing/test-database';
import { hashKey, writeKeysFile } from '@sluice/shared/keys/keys-file';
import { eventually } from '@sluice/shared/testing/eventually';
import { expect, inject } from 'vitest';
import { type Service, startService } from './service.ts';

// The order of storage is what webhooks are delivered in, so events are stored here without a writer.

const KEY = 'manages-webhooks';
/** Short, because tests wait until it is over; a machine that stalls for less must not end it. */
export const LEASE_MS = 10_000;

/** Stands for the instances themselves in the table of leases. */
const INSTANCES = '00000000-0000-0000-0000-000000000000';

/** Two instances of query-api, a receiver, and a database without a writer. */
export interface WebhookInstances extends AsyncDisposable {
  readonly clickHouse: ClickHouseClient;
  readonly instances: readonly [Service, Service];
  readonly receiver: Receiver;
  store(events: readonly TestEvent[]): Promise<void>;
  /** Creates a webhook at an instance, and returns its id. */
  subscribe(instance: Service, batched?: boolean): Promise<string>;
  /** Returns the highest epoch of a lease. */
  epoch(webhook: string): Promise<number>;
  /** Returns how many attempts the stored position counts. */
  storedAttempts(webhook: string): Promise<number>;
  /** Returns the instance that delivers, once there is one. */
  holder(): Promise<Service>;
}

export async function startWebhookInstances(leaseMs = LEASE_MS): Promise<WebhookInstances> {
  await using started = new AsyncDisposableStack();
  const database = await createDatabase(inject('clickhouseUrl'));
  started.defer(() => database.release());
  const folder = started.use(await makeTempDir());
  const keysFile = `${folder.path}/keys.json`;
  await writeKeysFile(keysFile, [{ id: 'w', hash: hashKey(KEY), workspace: 'a', scopes: ['webhooks'] }]);
  const { CLICKHOUSE_URL, CLICKHOUSE_DATABASE } = database.config;
  const env = {
    ...{ CLICKHOUSE_URL, CLICKHOUSE_DATABASE, API_KEYS_FILE: keysFile },
    ...{ ...QUERY_ACCOUNT, ...WEBHOOKS_ENV, WEBHOOK_LEASE_MS: String(leaseMs) },
  };
  const ports = await findFreePorts(2);
  const instances = ports.map((port) => startService('query-api', port, env)) as unknown as [Service, Service];
  for (const instance of instances) started.defer(() => instance.kill9());
  const receiver = started.use(await Receiver.start());
  const clickHouse = started.adopt(administratorOf(database.config), (client) => client.close());
  const { store } = insertInto(clickHouse);
  for (const instance of instances) await instance.ready();
  const newest = async (expression: string, webhook: string) => {
    const result = await clickHouse.query({
      query: `SELECT ${expression} WHERE webhook_id = {webhook:UUID}`,
      ...{ query_params: { webhook }, format: 'JSONCompactEachRow' },
    });
    return (await result.json<[number]>())[0]?.[0] ?? 0;
  };
  const kept = started.move();
  return {
    ...{ clickHouse, instances, receiver },
    store: (events) => store('a', events),
    async subscribe(instance, batched = false) {
      const response = await fetch(`${instance.url}/webhooks`, {
        method: 'POST',
        headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
        body: JSON.stringify({ url: receiver.url, batched }),
      });
      expect(response.status).toBe(201);
      return ((await response.json()) as { id: string }).id;
    },
    epoch: (webhook) => newest('max(epoch) FROM webhook_leases', webhook),
    storedAttempts: (webhook) => newest('max(log_lines) FROM webhook_positions FINAL', webhook),
    async holder() {
      // Both know of each other before one claims the webhook, so it stays there.
      const query = `SELECT uniqExact(holder) AS holders FROM webhook_leases WHERE webhook_id = '${INSTANCES}'`;
      await eventually(async () => {
        const result = await clickHouse.query({ query, format: 'JSONEachRow' });
        return (await result.json<{ holders: number }>())[0]?.holders;
      }).toBe(2);
      const held = async () => (await Promise.all(instances.map(heldBy))).indexOf(1);
      await eventually(held).toBeGreaterThanOrEqual(0);
      return instances[(await held()) as 0 | 1];
    },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

/** Returns how many webhooks an instance delivers. */
export async function heldBy(instance: Service): Promise<number> {
  const text = await (await fetch(`${instance.url}/metrics`)).text();
  return Number(/^sluice_webhooks_held (\d+)$/m.exec(text)?.[1] ?? 0);
}

/**
 * Kills the instance that delivers after the receiver took one event, or a part of a batch: the copy has the same events and
 * the same `webhook-id`.
 */
export async function expectSameCopy(batched: boolean): Promise<void> {
  await using system = await startWebhookInstances();
  const { instances, receiver } = system;
  await system.subscribe(instances[0], batched);
  const holder = await system.holder();
  // The receiver has taken it, and the instance ends before it could store that.
  let isKilled = false;
  const kill: Behaviour = (received, response) => {
    if (isKilled) return accept(received, response);
    isKilled = true;
    void holder.kill9().then(() => accept(received, response));
  };
  receiver.behaviour = kill;
  const [first, second] = [[anEvent(), anEvent()], [anEvent()]];
  await system.store(first);
  await eventually(() => isKilled).toBe(true);
  // The copy must not have what came later.
  await system.store(second);
  const all = [...first, ...second].map(({ uuid }) => uuid).sort();
  await eventually(() => [...new Set(receiver.uuids)].sort()).toEqual(all);
  const [copied, copy] = receiver.received;
  expect(copy?.headers['webhook-id']).toBe(copied?.headers['webhook-id']);
  expect(copy?.body).toBe(copied?.body);
  const later = receiver.received.slice(2);
  expect(new Set(receiver.ids.slice(1)).size).toBe(1 + later.length);
}
