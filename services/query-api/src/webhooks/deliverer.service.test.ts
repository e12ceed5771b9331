import { createLogger } from '@sluice/shared/base/log';
import { sleep } from '@sluice/shared/base/retry';
import { MemoryBudget } from '@sluice/shared/http/memory-budget';
import { Problem } from '@sluice/shared/http/problem';
import { eventually } from '@sluice/shared/testing/eventually';
import { until } from '@sluice/shared/testing/until';
import { Registry } from 'prom-client';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { QueryMetrics, StreamMetrics } from '../metrics.ts';
import { QueryRunner } from '../store/query-runner.ts';
import { openStores } from '../store/servers/open-stores.ts';
import { StreamHubs } from '../stream/stream-hubs.ts';
import { anEvent, connectReader, type QueryService, startQuery } from '../testing/query-service.ts';
import { accept, Receiver, WEBHOOKS_ENV } from '../testing/webhooks.ts';
import { AllowedAddresses } from './allowed-addresses.ts';
import { AttemptPlaces } from './attempt-places.ts';
import { Deliverer, type DelivererOptions } from './deliverer.ts';
import { DeliveryLog } from './delivery-log.ts';
import { type EventSourceOptions, eventSources } from './event-source.ts';
import { HttpSender } from './http-sender.ts';
import { ReceiverNames } from './receiver-names.ts';
import { ShownEvents } from './shown-events.ts';
import type { Webhook } from './webhook.ts';
import { WebhookMetrics } from './webhook-metrics.ts';
import { WebhookPositions } from './webhook-positions.ts';
import { WebhookRegister } from './webhook-register.ts';
import { positionNow, type StreamSource } from './webhook-stream.ts';

let query: QueryService;
let streams: StreamSource;
let options: Omit<DelivererOptions, 'open'>;
let sources: EventSourceOptions;
const started = new AsyncDisposableStack();

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'), WEBHOOKS_ENV);
  started.defer(() => query.stop());
  const { config, clickHouse } = query;
  const [registry, logger] = [new Registry(), createLogger('query-api', 'silent')];
  const reader = connectReader(config);
  started.defer(() => reader.close());
  const all: QueryRunner['all'] = (one) => queryRunner.all(one);
  const { stores } = openStores({ reader }, { config, registry, logger, queryRunner: { all } });
  const queryRunner: QueryRunner = new QueryRunner(stores, config, new QueryMetrics(registry));
  const readiness = async () => [];
  const hubs = new StreamHubs({ config, queryRunner, stores, readiness, metrics: new StreamMetrics(registry), logger });
  streams = { open: (...listener) => hubs.open(...listener), inQuery: async (_, parameters) => parameters };
  started.defer(() => hubs.stop());
  const sender = new HttpSender({
    ...{ addresses: new AllowedAddresses(['127.0.0.1']), names: new ReceiverNames(), timeoutMs: 60_000 },
  });
  const shown = new ShownEvents({ config, queryRunner, stores });
  started.defer(() => sender.close());
  const [positions, log] = [new WebhookPositions(clickHouse, logger), new DeliveryLog(clickHouse, logger)];
  started.defer(() => positions.stop());
  started.defer(() => log.stop());
  sources = { streams, memory: new MemoryBudget(64_000_000), shown, segmentsMsMax: 600_000 };
  options = {
    ...{ places: new AttemptPlaces(20), sender, positions, log, metrics: new WebhookMetrics(registry), logger },
    ...{ retryMsMax: 1_000, giveUpMs: 600_000, pause: async () => true },
  };
});
afterAll(() => started.disposeAsync());

function webhookTo(url: string, workspace = 'a'): Webhook {
  return {
    ...{
      id: crypto.randomUUID(),
      workspace,
      url,
      filter: {},
      kind: 'events',
      batched: false,
      content: {},
      secret: 'whsec_AAAA',
    },
    ...{ previousSecret: '', previousSecretUntilMs: 0, createdAtMs: 0 },
  };
}

async function begin(
  url: string,
  leaseMsLeft: () => number,
  given: Partial<EventSourceOptions & DelivererOptions & Pick<Webhook, 'workspace' | 'filter'>> = {},
) {
  const { workspace, filter = {}, pause = options.pause, ...ofSource } = given;
  const webhook = { ...webhookTo(url, workspace), filter };
  const position = await positionNow(streams, webhookTo(url, workspace));
  const progress = { epoch: 1, position, sendingTo: '', attempts: 0, failingMs: 0, logLines: 0 };
  const open = eventSources({ ...sources, ...ofSource });
  return new Deliverer({ ...options, open, pause }, { webhook, progress, leaseMsLeft });
}

test('an event that is read after the lease has ended is not sent', async () => {
  await using receiver = await Receiver.start();
  let msLeft = 60_000;
  let asked = 0;
  const deliverer = await begin(receiver.url, () => {
    asked += 1;
    return msLeft;
  });
  const [first, second] = [anEvent(), anEvent()];
  await query.store('a', [first]);
  await eventually(() => receiver.uuids).toEqual([first.uuid]);
  // The process was frozen: its stream is open, and its time is over.
  msLeft = 0;
  const before = asked;
  await query.store('a', [second]);
  await eventually(() => asked > before + 1 || receiver.received.length > 1).toBe(true);
  expect(receiver.uuids).toEqual([first.uuid]);
  msLeft = 60_000;
  await eventually(() => receiver.uuids).toEqual([first.uuid, second.uuid]);
  await deliverer.stop();
});

test('a segment that is changed is in force once its time is over; without segments a stream stays open', async () => {
  await using receiver = await Receiver.start();
  await using other = await Receiver.start();
  // What the segment is: events of a name are enough for a test of deliveries.
  let named = 'one';
  const opened = { withSegment: 0, without: 0 };
  const openedBy = (who: keyof typeof opened): EventSourceOptions['streams'] => ({
    async open(...request) {
      opened[who] += 1;
      return await streams.open(...request);
    },
    inQuery: async (_, { segment, ...parameters }) => ({ ...parameters, ...(segment && { event: [named] }) }),
  });
  const given = { workspace: 'segments', segmentsMsMax: 500 };
  const withSegment = { ...given, filter: { segment: 's' }, streams: openedBy('withSegment') };
  const deliverer = await begin(receiver.url, () => 60_000, withSegment);
  const plain = await begin(other.url, () => 60_000, { ...given, streams: openedBy('without') });
  const storeOne = async (event: string) => {
    const stored = anEvent({ event });
    await query.store('segments', [stored]);
    return stored.uuid;
  };

  const first = await storeOne('one');
  await eventually(() => receiver.uuids).toContain(first);
  named = 'two';
  const before = opened.withSegment;
  // A stream ends with the first event after its time. Of two that are opened now, the second one knows the change for sure.
  await until('the stream to be opened twice more', async () => {
    for (const event of ['one', 'two']) await storeOne(event);
    return opened.withSegment >= before + 2;
  });
  const changed = await storeOne('two');
  await eventually(() => receiver.uuids).toContain(changed);
  await eventually(() => other.uuids).toContain(changed);
  expect(opened.without).toBe(1);
  await Promise.all([deliverer.stop(), plain.stop()]);
});

test('a stream that ends at once is not opened again and again', async () => {
  await using receiver = await Receiver.start();
  let opened = 0;
  const ending: EventSourceOptions['streams'] = {
    ...streams,
    async open(...request) {
      opened += 1;
      const listener = await streams.open(...request);
      listener.end('failed');
      return listener;
    },
  };
  const deliverer = await begin(receiver.url, () => 60_000, { streams: ending });
  await eventually(() => opened).toBeGreaterThan(1);
  await sleep(1_000);
  expect(opened).toBeLessThanOrEqual(20);
  await deliverer.stop();
});

test('a webhook whose events could not be read in time is not paused, and one whose filter is no longer valid is', async () => {
  await using receiver = await Receiver.start();
  const problems: Problem[] = [];
  const failing: EventSourceOptions['streams'] = {
    ...streams,
    async open(...request) {
      const problem = problems.shift();
      if (problem) throw problem;
      return await streams.open(...request);
    },
  };
  const reasons: string[] = [];
  const pause: DelivererOptions['pause'] = async (_, reason) => reasons.push(reason) > 0;
  problems.push(new Problem('query_too_expensive', 'late'), new Problem('store_unavailable', 'away'));
  const busy = await begin(receiver.url, () => 60_000, { streams: failing, pause });
  const event = anEvent();
  await query.store('a', [event]);
  await eventually(() => receiver.uuids).toEqual([event.uuid]);
  expect(reasons).toEqual([]);
  await busy.stop();
  expect(problems).toEqual([]);
  problems.push(new Problem('invalid_request', 'no such filter'));
  const wrong = await begin(receiver.url, () => 60_000, { streams: failing, pause });
  await eventually(() => wrong.isPaused).toBe(true);
  expect(reasons).toEqual(['filter']);
  await wrong.stop();
});

test('one that stops has stored what it delivered last', async () => {
  await using receiver = await Receiver.start();
  const deliverer = await begin(receiver.url, () => 60_000);
  const event = anEvent();
  await query.store('a', [event]);
  await eventually(() => receiver.uuids).toContain(event.uuid);
  // Before it has read the response, it would give the delivery up.
  await eventually(() => deliverer.behindSinceMs).toBe(0);
  await deliverer.stop();
  const result = await query.clickHouse.query({
    query: 'SELECT count() AS stored FROM webhook_positions WHERE webhook_id = {id:UUID}',
    ...{ query_params: { id: deliverer.webhook.id }, format: 'JSONEachRow' },
  });
  expect(await result.json()).toEqual([{ stored: 1 }]);
});

describe('a webhook is paused after the time for which instances saw it fail', () => {
  const DAY_MS = 86_400_000;
  const refuse: Receiver['behaviour'] = (_, response) => response.writeHead(500).end();

  /** Delivers one event from a position that an instance stored whose clock was off. */
  async function fail(receiver: Receiver, offByMs: number, giveUpMs: number) {
    receiver.behaviour = refuse;
    const webhook = webhookTo(receiver.url);
    const register = new WebhookRegister(query.clickHouse);
    await register.save(webhook);
    const clockMs = Date.now() + offByMs;
    await query.insert('webhook_positions', [
      {
        ...{ webhook_id: webhook.id, epoch: 1, sequence: 1, position: await positionNow(streams, webhook) },
        ...{ attempts: 3, failing_since: clockMs - 1_000, stored_at: clockMs },
      },
    ]);
    await query.store('a', [anEvent()]);
    const reasons: string[] = [];
    const pause: DelivererOptions['pause'] = async (_, reason) => reasons.push(reason) > 0;
    const { progress, failingSinceMs } = (await register.find('a', webhook.id)) ?? {};
    if (!progress) throw new Error('the webhook is not stored');
    expect(failingSinceMs).toBe(clockMs - 1_000);
    const start = { webhook, progress, leaseMsLeft: () => 60_000 };
    return {
      deliverer: new Deliverer({ ...options, open: eventSources(sources), giveUpMs, pause }, start),
      register,
      reasons,
    };
  }

  /** The clock of the instance before was days off, in either direction. */
  const CLOCKS_OFF_MS = [-30 * DAY_MS, 30 * DAY_MS];

  test('not at once, whatever clock the instance before had', async () => {
    const outcomes = CLOCKS_OFF_MS.map(async (offByMs) => {
      await using receiver = await Receiver.start();
      const { deliverer, register, reasons } = await fail(receiver, offByMs, DAY_MS);
      await until('another attempt', async () => receiver.received.length > 1);
      await deliverer.stop();
      expect(reasons).toEqual([]);
      const { progress } = (await register.find('a', deliverer.webhook.id)) ?? {};
      expect(progress?.attempts).toBeGreaterThan(3);
      // A second of the instance before, and the pauses before these attempts.
      expect(progress?.failingMs).toBeGreaterThan(1_400);
      expect(progress?.failingMs).toBeLessThan(DAY_MS);
    });
    await Promise.all(outcomes);
  });

  test('in time, whatever clock the instance before had', async () => {
    const outcomes = CLOCKS_OFF_MS.map(async (offByMs) => {
      await using receiver = await Receiver.start();
      const { deliverer, reasons } = await fail(receiver, offByMs, 2_500);
      await until('the pause', async () => deliverer.isPaused);
      expect(reasons).toEqual(['failing']);
      await deliverer.stop();
    });
    await Promise.all(outcomes);
  });
});

describe('the memory of what waits for receivers', () => {
  const aLargeEvent = () => anEvent({ properties: JSON.stringify({ text: 'x'.repeat(100_000) }) });
  const forAMinute = () => 60_000;

  test('is held until the receiver has responded, and all of it released at the end', async () => {
    const memory = new MemoryBudget(8_000_000);
    await using receiver = await Receiver.start();
    const responses: (() => void)[] = [];
    receiver.behaviour = (received, response) => void responses.push(() => accept(received, response));
    const deliverer = await begin(receiver.url, forAMinute, { memory });
    for (let count = 0; count < 3; count += 1) await query.store('a', [aLargeEvent()]);
    await eventually(() => receiver.received.length).toBe(1);
    // The event, and the body of its request.
    await eventually(() => memory.reservedBytes).toBeGreaterThan(200_000);
    receiver.behaviour = accept;
    for (const respond of responses) respond();
    await eventually(() => receiver.received.length).toBe(3);
    await eventually(() => memory.reservedBytes).toBeLessThan(100_000);
    await deliverer.stop();
    expect(memory.reservedBytes).toBe(0);
  });

  test('that a workspace has used up keeps its webhooks waiting, and not those of others', async () => {
    const memory = new MemoryBudget(8_000_000);
    await using receiver = await Receiver.start();
    await using other = await Receiver.start();
    const deliverer = await begin(receiver.url, forAMinute, { memory });
    const ofOther = await begin(other.url, forAMinute, { memory, workspace: 'b' });
    // Both streams are open.
    await eventually(() => memory.reservedBytes).toBeGreaterThan(32_000);
    // Each key of the workspace takes what is left for it.
    const held = Array.from({ length: 12 }, (_, key) => memory.open({ hash: `key ${key}`, workspace: 'a' }));
    for (const one of held) while (one.grow(5_000));
    for (let count = 1; count <= 3; count += 1) {
      await query.store('a', [aLargeEvent()]);
      await query.store('b', [aLargeEvent()]);
      await eventually(() => other.received.length).toBe(count);
    }
    expect(receiver.received).toEqual([]);
    for (const one of held) one.release();
    await eventually(() => receiver.received.length).toBe(3);
    for (const one of [deliverer, ofOther]) await one.stop();
    expect(memory.reservedBytes).toBe(0);
  });
});
