import { randomUUID, randomUUIDv7 } from 'node:crypto';
import { expect, inject, test, vi } from 'vitest';
import { type Accepted, expectStoredOnce, submitUntilAccepted } from '../support/clients.ts';
import { startPipeline } from '../support/pipeline.ts';
import { startProxy } from '../support/proxy.ts';
import type { EntityRecord } from '../support/records.ts';

vi.setConfig({ testTimeout: 300_000 });

const kafkaBrokers = inject('kafkaBrokers');
const clickhouseUrl = inject('clickhouseUrl');

test('ingest-api is killed when its response begins, again and again: clients retry, everything is stored once', async () => {
  await using running = await startPipeline({ kafkaBrokers, clickhouseUrl, name: 'answering' });
  let [responses, kills] = [0, 0];
  let restarted: Promise<void> | undefined;
  await using proxy = await startProxy(running.services['ingest-api'].url, () => {
    responses += 1;
    if (restarted || responses % 20 !== 0 || kills === 4) return 'deliver';
    kills += 1;
    restarted = running.services['ingest-api']
      .kill9()
      .then(() => running.restart('ingest-api'))
      .finally(() => {
        restarted = undefined;
      });
    return 'cut';
  });
  const [clients, submissions] = [8, 20];
  const sendAll = async () => {
    let attempts = 0;
    for (let index = 0; index < submissions; index += 1) {
      const events = [randomUUID(), randomUUID()].map((uuid) => ({
        event: 'e',
        uuid,
        timestamp: new Date().toISOString(),
      }));
      const body = { foreignUserGroupId: 'g', events };
      attempts += (await submitUntilAccepted(body, { url: proxy.url, key: running.key })).attempts;
    }
    return attempts;
  };
  const attempts = await Promise.all(Array.from({ length: clients }, sendAll));
  expect(kills).toBe(4);
  expect(proxy.lost).toBe(4);
  expect(attempts.reduce((sum, count) => sum + count)).toBeGreaterThanOrEqual(clients * submissions + kills);
  await restarted;
  await expectStoredOnce(running, clickhouseUrl, clients * submissions * 2);
});

test('a client sends everything five times, to two ingest-apis: it is stored once', async () => {
  await using running = await startPipeline({ kafkaBrokers, clickhouseUrl, name: 'fivefold' });
  const another = await running.startAnother('ingest-api');
  const urls = [running.services['ingest-api'].url, another.url];
  const timestamp = new Date(Date.now() - 86_400_000).toISOString();

  const send = (repeat: number, body: object, path: string, headers = {}) =>
    submitUntilAccepted(body, { url: urls[repeat % 2] ?? '', key: running.key, path, headers });
  type Sending = (repeat: number) => Promise<Accepted>;
  const manners = {
    concurrently: async (sending: Sending) => await Promise.all([0, 1, 2, 3, 4].map(sending)),
    'one after the other': async (sending: Sending) => {
      const accepted: Accepted[] = [];
      for (let repeat = 0; repeat < 5; repeat += 1) accepted.push(await sending(repeat));
      return accepted;
    },
  };
  const variants: Record<string, { event: () => object; headers?: () => Record<string, string> }> = {
    'uuids and timestamps': { event: () => ({ uuid: randomUUID(), timestamp }) },
    'uuids of version 7': { event: () => ({ uuid: randomUUIDv7() }) },
    'uuids of version 4': { event: () => ({ uuid: randomUUID() }) },
    'an Idempotency-Key': { event: () => ({}), headers: () => ({ 'idempotency-key': randomUUID() }) },
  };
  let total = 0;
  for (const [variant, { event, headers }] of Object.entries(variants)) {
    for (const [manner, sendFiveTimes] of Object.entries(manners)) {
      const id = `${variant}, ${manner}`;
      // The second changes properties that the first has set.
      for (const properties of [{ plan: 'trial', seats: 1 }, { plan: 'paid' }]) {
        const events = Array.from({ length: 3 }, () => ({ event: 'e', ...event() }));
        const group = { foreignUserGroupId: id, foreignUserId: id, events, properties };
        const user = { foreignId: id, events: [{ event: 'e', ...event() }], properties };
        for (const [path, body] of Object.entries({ '/v1/public/userGroups': group, '/v1/public/users': user })) {
          const sameHeaders = headers?.();
          const accepted = await sendFiveTimes((repeat) => send(repeat, body, path, sameHeaders));
          for (const { uuids } of accepted) expect(uuids).toEqual(accepted[0]?.uuids);
          total += body.events.length;
        }
      }
    }
  }
  await expectStoredOnce(running, clickhouseUrl, total);
  for (const variant of Object.keys(variants)) {
    for (const manner of Object.keys(manners)) {
      for (const kind of ['organizations', 'users']) {
        const { body } = await running.get<EntityRecord>(`/${kind}/${encodeURIComponent(`${variant}, ${manner}`)}`);
        expect(body.properties).toEqual({ plan: 'paid', seats: 1 });
        if (variant === 'uuids and timestamps') {
          expect([body.firstSeenAt, body.lastSeenAt].map(Date.parse)).toEqual(Array(2).fill(Date.parse(timestamp)));
        }
      }
    }
  }
});
