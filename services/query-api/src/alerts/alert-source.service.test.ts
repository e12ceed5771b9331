import { createLogger } from '@sluice/shared/base/log';
import { MemoryBudget } from '@sluice/shared/http/memory-budget';
import { Registry } from 'prom-client';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { Views } from '../manage/views/views.ts';
import { QueryMetrics } from '../metrics.ts';
import { QueryRunner } from '../store/query-runner.ts';
import { openStores } from '../store/servers/open-stores.ts';
import { saveView } from '../testing/alerts.ts';
import { anEvent, connectReader, type QueryService, startQuery } from '../testing/query-service.ts';
import { send } from '../testing/views.ts';
import { WEBHOOKS_ENV } from '../testing/webhooks.ts';
import type { PassedOver, Sendable } from '../webhooks/delivery-source.ts';
import type { StoredWebhook, Webhook } from '../webhooks/webhook.ts';
import { AlertMetrics } from './alert-metrics.ts';
import { alertSources, LATE_MS, type SourcesOptions } from './alert-source.ts';
import { type AlertState, statusOf } from './alert-state.ts';
import type { Decision } from './deciding-source.ts';
import type { DigestState } from './digest.ts';
import { digestSources } from './digest-source.ts';
import { ViewNumbers } from './view-numbers.ts';

let query: QueryService;
let options: Omit<SourcesOptions, 'find' | 'clock'>;
const started = new AsyncDisposableStack();

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'), { ...WEBHOOKS_ENV, WEBHOOK_DELIVERY: 'false' });
  started.defer(() => query.stop());
  const { config } = query;
  const [registry, logger] = [new Registry(), createLogger('query-api', 'silent')];
  const reader = connectReader(config);
  started.defer(() => reader.close());
  const all: QueryRunner['all'] = (one) => queryRunner.all(one);
  const { stores } = openStores({ reader }, { config, registry, logger, queryRunner: { all } });
  const queryRunner: QueryRunner = new QueryRunner(stores, config, new QueryMetrics(registry));
  const views = new Views(query.clickHouse);
  const memory = new MemoryBudget(64_000_000);
  const numbers = new ViewNumbers({ config, queryRunner, stores, memory, views });
  options = { numbers, everyMs: 20, metrics: new AlertMetrics(registry), logger };
});
afterAll(() => started.disposeAsync());

const NOON = Date.UTC(2026, 2, 1, 12);
const MINUTE_MS = 60_000;

/** The time of the log, as a test sets it. */
class SetClock {
  nowMs = 0;
  lagMs: number | undefined = 0;

  /** Everything is stored that Kafka has got at a time; windows are whole that end before. */
  set(wholeMs: number): void {
    this.nowMs = wholeMs + LATE_MS;
  }

  async read() {
    return { nowMs: this.nowMs, throughMs: this.lagMs === undefined ? undefined : this.nowMs - this.lagMs };
  }
}

const KINDS = { alert: alertSources, digest: digestSources } as const;

/** Opens the source of an alert or a digest, and says what it has decided. */
async function open(workspace: string, kind: keyof typeof KINDS, content: object, position = '{}') {
  const clock = new SetClock();
  const webhook = { id: crypto.randomUUID(), workspace, kind, content, url: 'http://127.0.0.1/' } as unknown as Webhook;
  const stored = { webhook, state: { state: 'active' } } as StoredWebhook;
  const source = await KINDS[kind]({ ...options, clock, find: async () => stored })(webhook, position);
  /** Returns what comes next. */
  const next = async (sendingTo = '', signal = new AbortController().signal) =>
    (await source.next(sendingTo, signal, () => undefined)) as Sendable | PassedOver | undefined;
  /** Expects that nothing comes for a while. */
  const nothing = async () => expect(await next('', AbortSignal.timeout(400))).toBeUndefined();
  return { clock, next, nothing };
}

function stateIn(next: Sendable | PassedOver | undefined): AlertState {
  if (!next) throw new Error('nothing was decided');
  return (JSON.parse(next.kind === 'message' ? next.end : next.position) as Decision<AlertState>).state;
}

/** Opens an alert of a new view of a workspace of its own. */
async function openAlert(workspace: string, given: object) {
  const view = await saveView(query, workspace, 'paid');
  const alert = { name: 'A', view, window: '1h', for: 1, format: 'signed', ...given };
  return { ...(await open(workspace, 'alert', alert)), view };
}

const store = (workspace: string, ...timesMs: readonly number[]) =>
  query.store(
    workspace,
    timesMs.map((timestampMs) => anEvent({ timestampMs, event: 'paid' })),
  );

describe('an alert', () => {
  test('takes whole windows alone, each once, and what was stored of it by then', async () => {
    const { clock, next, nothing } = await openAlert('a', { condition: { is: 'above', threshold: 1 } });
    await store('a', NOON - 1, NOON, NOON + 1, NOON + 60 * MINUTE_MS);
    clock.set(NOON + 59 * MINUTE_MS);
    expect(stateIn(await next())).toMatchObject({ endMs: NOON, value: 1, firing: false });
    // The hour is not over, and then not yet whole.
    for (const ms of [NOON + 59 * MINUTE_MS + 30_000, NOON + 60 * MINUTE_MS - 1]) {
      clock.set(ms);
      await nothing();
    }
    clock.set(NOON + 60 * MINUTE_MS);
    const fires = await next();
    expect([fires?.kind, stateIn(fires)]).toMatchObject(['message', { endMs: NOON + 60 * MINUTE_MS, value: 2 }]);
    clock.set(NOON + 61 * MINUTE_MS);
    await nothing();
    clock.set(NOON + 120 * MINUTE_MS);
    expect(stateIn(await next())).toMatchObject({ value: 1, firing: false, messages: 2 });
  });

  test('fires after so many windows in a row, and compares with the window before', async () => {
    const condition = { is: 'changes', percent: 100 };
    const { clock, next } = await openAlert('b', { condition, for: 2, window: '1m' });
    await store('b', NOON, NOON + MINUTE_MS, NOON + MINUTE_MS, ...Array(4).fill(NOON + 2 * MINUTE_MS));
    const states: unknown[] = [];
    for (let minute = 1; minute <= 4; minute += 1) {
      clock.set(NOON + minute * MINUTE_MS);
      const decided = await next();
      const { value, before } = stateIn(decided);
      states.push([decided?.kind, before, value, statusOf(stateIn(decided))]);
    }
    expect(states).toEqual([
      ['position', 0, 1, 'pending'],
      ['message', 1, 2, 'firing'],
      ['position', 2, 4, 'firing'],
      ['position', 4, 0, 'firing'],
    ]);
  });

  test('is not judged while the log is stored later than a window is long, and says so', async () => {
    const { clock, next } = await openAlert('c', { condition: { is: 'absent' }, window: '5m' });
    clock.set(NOON);
    clock.lagMs = 5 * MINUTE_MS + 1;
    const late = await next();
    expect([late?.kind, stateIn(late)]).toMatchObject([
      'position',
      { firing: false, endMs: 0, trouble: { kind: 'late', reason: 'Events are stored 5 minutes late.' } },
    ]);
    clock.set(NOON + MINUTE_MS);
    clock.lagMs = undefined;
    expect(stateIn(await next()).trouble).toMatchObject({ reason: expect.stringMatching(/^No writer has said/) });
    clock.lagMs = 5 * MINUTE_MS;
    // What is stored by then is judged.
    expect(stateIn(await next())).toMatchObject({ firing: true, endMs: NOON - 4 * MINUTE_MS, trouble: null });
  });

  test('goes on after numbers could not be read, as if nothing had been', async () => {
    const { clock, next, view } = await openAlert('d', { condition: { is: 'below', threshold: 1 }, window: '1m' });
    await store('d', NOON + MINUTE_MS);
    await send(query, 'PATCH', `/views/${view}`, { report: 'values', parameters: { property: 'event' } }, 'd');
    clock.set(NOON + 2 * MINUTE_MS);
    const failed = await next();
    expect(stateIn(failed)).toMatchObject({ firing: false, held: 0, trouble: { kind: 'failed' } });
    await send(query, 'PATCH', `/views/${view}`, { report: 'series', parameters: { event: 'paid' } }, 'd');
    // It is tried again in the next minute, of which the window is another one.
    clock.set(NOON + 3 * MINUTE_MS);
    expect(stateIn(await next())).toMatchObject({ firing: true, value: 0, trouble: null });
  });

  test('gives a message the same id and text until it is delivered', async () => {
    const { clock, next } = await openAlert('e', { condition: { is: 'absent' } });
    clock.set(NOON);
    const fires = (await next()) as Sendable;
    const again = (await next(fires.end)) as Sendable;
    expect(await again.message()).toEqual(await fires.message());
    expect(fires.isWhole).toBe(false);
  });
});

describe('a digest', () => {
  test('has the numbers of a dashboard up to the end of the day before, once a day, and none twice after an outage', async () => {
    const parameters = { range: '2d', form: 'number' };
    const [view, other] = [await saveView(query, 'f', 'paid', parameters), await saveView(query, 'f', 'paid')];
    const tiles = [other, view].map((id) => ({ view: id, width: 1 }));
    const dashboard = (await send(query, 'POST', '/dashboards', { name: 'Morning', tiles }, 'f')).body.id;
    const DAY_MS = 24 * 60 * MINUTE_MS;
    // Of today, of the two days before, and of the two days before these.
    await store('f', NOON, ...Array(3).fill(NOON - DAY_MS), ...Array(2).fill(NOON - 3 * DAY_MS));
    const digest = { dashboard, hour: 8, timeZone: 'UTC', format: 'signed' };
    const { clock, next, nothing } = await open('f', 'digest', digest);
    const dueIn = (decided: Sendable | PassedOver | undefined) =>
      new Date((stateIn(decided) as unknown as DigestState).dueMs).toISOString();
    clock.set(NOON - 2 * DAY_MS);
    const first = await next();
    expect([first?.kind, dueIn(first)]).toEqual(['position', '2026-02-27T08:00:00.000Z']);
    await nothing();
    clock.set(NOON);
    const due = (await next()) as Sendable;
    expect([due.kind, dueIn(due)]).toEqual(['message', '2026-03-01T08:00:00.000Z']);
    expect(JSON.parse((await due.message())?.body ?? '')).toMatchObject({
      type: 'digest',
      timestamp: '2026-03-01T08:00:00.000Z',
      data: {
        dashboard: { id: dashboard, name: 'Morning' },
        endDate: '2026-03-01T00:00:00.000Z',
        numbers: [{ view: { id: view }, value: 3, before: 2, changePercent: 50, error: null }],
      },
    });
    await nothing();
  });
});
