import { randomUUID, randomUUIDv7 } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { type Accepted, expectStoredOnce, submitUntilAccepted } from '../kit/clients.ts';
import { type Pipeline, startPipeline } from '../kit/pipeline.ts';
import { startProxy } from '../kit/proxy.ts';
import type { EntityRecord } from '../kit/records.ts';

const kafkaBrokers = inject('kafkaBrokers');
const clickhouseUrl = inject('clickhouseUrl');

/** Each when a response begins. */
const KILLS = 2;

test('ingest-api is killed when its response begins, again and again: clients retry, everything is stored once', async () => {
  await using running = await startPipeline({ kafkaBrokers, clickhouseUrl, name: 'answering' });
  let [responses, kills] = [0, 0];
  let restarted: Promise<void> | undefined;
  await using proxy = await startProxy(running.services['ingest-api'].url, () => {
    responses += 1;
    if (restarted || responses % 20 !== 0 || kills === KILLS) return 'deliver';
    kills += 1;
    restarted = running.services['ingest-api']
      .kill9()
      .then(() => running.restart('ingest-api'))
      .finally(() => {
        restarted = undefined;
      });
    return 'cut';
  });
  const [clients, submissions] = [8, 10];
  let sent = 0;
  const sendAll = async () => {
    let attempts = 0;
    // However many responses a restart takes, there is one to cut after it.
    for (let index = 0; index < submissions || kills < KILLS; index += 1) {
      sent += 1;
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
  expect(kills).toBe(KILLS);
  expect(proxy.lost).toBe(KILLS);
  expect(attempts.reduce((sum, count) => sum + count)).toBeGreaterThanOrEqual(sent + kills);
  await restarted;
  await expectStoredOnce(running, clickhouseUrl, sent * 2);
});

describe('a client that sends everything five times, to two ingest-apis', () => {
  type Send = (repeat: number) => Promise<Accepted>;
  type Manner = (send: Send) => Promise<readonly Accepted[]>;
  const concurrently: Manner = async (send) => await Promise.all([0, 1, 2, 3, 4].map(send));
  const oneByOne: Manner = async (send) => {
    const accepted: Accepted[] = [];
    for (let repeat = 0; repeat < 5; repeat += 1) accepted.push(await send(repeat));
    return accepted;
  };
  interface Variant {
    readonly event: () => object;
    readonly headers?: () => Record<string, string>;
  }
  const timestamp = new Date(Date.now() - 86_400_000).toISOString();
  const timed: Variant = { event: () => ({ uuid: randomUUID(), timestamp }) };
  const uuidV7: Variant = { event: () => ({ uuid: randomUUIDv7() }) };
  const uuidV4: Variant = { event: () => ({ uuid: randomUUID() }) };
  const idempotencyKey: Variant = { event: () => ({}), headers: () => ({ 'idempotency-key': randomUUID() }) };

  let running: Pipeline;
  let urls: string[];
  let total = 0;
  beforeAll(async () => {
    running = await startPipeline({ kafkaBrokers, clickhouseUrl, name: 'fivefold' });
    const another = await running.startAnother('ingest-api');
    urls = [running.services['ingest-api'].url, another.url];
  });
  afterAll(() => running?.stop());

  test.each([
    ['timestamps and UUIDs', timed, 'concurrently', concurrently],
    ['timestamps and UUIDs', timed, 'one after the other', oneByOne],
    ['UUIDs of version 7', uuidV7, 'concurrently', concurrently],
    ['UUIDs of version 7', uuidV7, 'one after the other', oneByOne],
    ['UUIDs of version 4', uuidV4, 'concurrently', concurrently],
    ['UUIDs of version 4', uuidV4, 'one after the other', oneByOne],
    ['an Idempotency-Key', idempotencyKey, 'concurrently', concurrently],
    ['an Idempotency-Key', idempotencyKey, 'one after the other', oneByOne],
  ] as const)('events with %s, %s: each is stored once, and the last properties win', async (...row) => {
    const [name, { event, headers }, mannerName, sendFiveTimes] = row as readonly [string, Variant, string, Manner];
    const id = `${name}, ${mannerName}`;
    // The second changes properties that the first has set.
    for (const properties of [{ plan: 'trial', seats: 1 }, { plan: 'paid' }]) {
      const events = Array.from({ length: 3 }, () => ({ event: 'e', ...event() }));
      const group = { foreignUserGroupId: id, foreignUserId: id, events, properties };
      const user = { foreignId: id, events: [{ event: 'e', ...event() }], properties };
      for (const [path, body] of Object.entries({ '/v1/public/userGroups': group, '/v1/public/users': user })) {
        const sameHeaders = headers?.() ?? {};
        const accepted = await sendFiveTimes((repeat) =>
          submitUntilAccepted(body, { url: urls[repeat % 2] ?? '', key: running.key, path, headers: sameHeaders }),
        );
        for (const { uuids } of accepted) expect(uuids).toEqual(accepted[0]?.uuids);
        total += body.events.length;
      }
    }
    await expectStoredOnce(running, clickhouseUrl, total);
    for (const kind of ['organizations', 'users']) {
      const { body } = await running.get<EntityRecord>(`/${kind}/${encodeURIComponent(id)}`);
      expect(body.properties).toEqual({ plan: 'paid', seats: 1 });
      if (event === timed.event) {
        expect([body.firstSeenAt, body.lastSeenAt].map(Date.parse)).toEqual(Array(2).fill(Date.parse(timestamp)));
      }
    }
  });
});
