import { AlertMetrics } from '@sluice/query-api/alerts/alert-metrics';
import { alertSources } from '@sluice/query-api/alerts/alert-source';
import { ConsoleDocuments } from '@sluice/query-api/manage/views/console-documents';
import { AttemptPlaces } from '@sluice/query-api/webhooks/attempt-places';
import { DeliveryLog } from '@sluice/query-api/webhooks/delivery-log';
import { type EventSourceOptions, eventSources } from '@sluice/query-api/webhooks/event-source';
import { type EventMembers, eventWebhooks } from '@sluice/query-api/webhooks/event-webhooks';
import { KnownWebhooks } from '@sluice/query-api/webhooks/known-webhooks';
import type { Webhook } from '@sluice/query-api/webhooks/webhook';
import { WebhookDeliveries } from '@sluice/query-api/webhooks/webhook-deliveries';
import { WebhookLeases } from '@sluice/query-api/webhooks/webhook-leases';
import { WebhookMetrics } from '@sluice/query-api/webhooks/webhook-metrics';
import {
  type ManagedKind,
  type OperationsOptions,
  WebhookOperations,
} from '@sluice/query-api/webhooks/webhook-operations';
import { WebhookPositions } from '@sluice/query-api/webhooks/webhook-positions';
import { WebhookRegister } from '@sluice/query-api/webhooks/webhook-register';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { Registry } from 'prom-client';
import { ConnectionBroken } from '../world/network.ts';
import { SimulatedProcess } from '../world/simulated-process.ts';
import { createTraceLogger } from '../world/trace-logger.ts';
import { registerClient } from './register-client.ts';
import type { WebhooksWorld } from './world.ts';

/** How long the client of ClickHouse waits for a response, in milliseconds. */
const STATEMENT_MS_MAX = 5_000;

/** As query-api manages them, without what responses show. */
const ALERTS: ManagedKind<object> = {
  ...{ kind: 'alert', singular: 'alert', max: 100 },
  firstPosition: async () => '{}',
  membersOf: () => ({}),
  testBody: () => ({}),
};

/** What requests are served with. */
export interface Parts {
  readonly operations: WebhookOperations<EventMembers>;
  readonly alerts: WebhookOperations<object>;
  readonly views: ConsoleDocuments<Record<string, string>>;
}

interface Running extends Parts {
  readonly process: SimulatedProcess;
  readonly deliveries: WebhookDeliveries;
  readonly positions: WebhookPositions;
  readonly log: DeliveryLog;
}

/** The place of a query-api in a deployment, as far as it stores and delivers webhooks, and stores views. */
export class QueryApiPlace {
  readonly #world: WebhooksWorld;
  readonly name: string;
  #running: Running | undefined;

  constructor(world: WebhooksWorld, name: string) {
    this.#world = world;
    this.name = name;
  }

  start(): void {
    if (this.#running) return;
    const process = new SimulatedProcess(this.name);
    this.#running = this.#world.time.runAs(process, () => this.#create(process));
  }

  #create(process: SimulatedProcess): Running {
    const { stored, numbers, receivers, leaseMs, perWorkspace } = this.#world;
    const logger = createTraceLogger((line) => this.#world.note(`${this.name} ${line}`));
    const holder = `${this.name} ${this.#world.nextNumber()}`;
    const client = this.#client(holder);
    const register = new WebhookRegister(client);
    const leases = new WebhookLeases(client, holder, leaseMs);
    const positions = new WebhookPositions(client, logger);
    const log = new DeliveryLog(client, logger);
    const metrics = new WebhookMetrics(new Registry());
    const places = new AttemptPlaces(perWorkspace);
    const sender = receivers.senderOf({ holder });
    const budget = { open: () => ({ grow: () => true, release() {} }) };
    const events = eventSources({
      ...{ streams: stored.hubs, memory: budget, shown: stored.shown, segmentsMsMax: 60_000 },
    } as unknown as EventSourceOptions);
    const alert = alertSources({
      ...{ ...numbers.read, find: (workspace, id) => register.find(workspace, id), everyMs: 300 },
      ...{ metrics: new AlertMetrics(new Registry()), logger },
    });
    const deliveries = new WebhookDeliveries({
      ...{ known: new KnownWebhooks(client), register, leases, leaseMs, metrics, logger },
      deliverer: {
        open: (webhook: Webhook, position: string) => (webhook.kind === 'alert' ? alert : events)(webhook, position),
        ...{ places, sender, positions, log, retryMsMax: 5_000, giveUpMs: 4_000 },
      } as unknown as ConstructorParameters<typeof WebhookDeliveries>[0]['deliverer'],
    });
    deliveries.start();
    const webhooks = { register, leases, positions, log, sender, places };
    const operations = new WebhookOperations({
      ...{ webhooks, kind: eventWebhooks(stored.hubs, 100) },
    } as unknown as OperationsOptions<EventMembers>);
    const alerts = new WebhookOperations({ webhooks, kind: ALERTS } as unknown as OperationsOptions<object>);
    return { process, deliveries, positions, log, operations, alerts, views: new ConsoleDocuments(client, 'view') };
  }

  /** Serves a request that has arrived. @throws {ConnectionBroken} when nobody listens */
  async serve<Value>(work: (parts: Parts) => Promise<Value>): Promise<Value> {
    const running = this.#running;
    if (!running) throw new ConnectionBroken(false);
    return await new Promise((resolve, reject) => {
      this.#world.time.after(0, () => void work(running).then(resolve, reject), running.process);
    });
  }

  /** Ends the process at once. */
  kill(): void {
    const { process } = this.#running ?? {};
    this.#running = undefined;
    process?.kill();
    this.#world.network.breakServer(this.name);
  }

  /** Ends the process as a service ends: it gives its webhooks up. */
  stop(): void {
    const running = this.#running;
    if (!running) return;
    const { time } = this.#world;
    this.#running = undefined;
    const stop = async () => {
      await running.deliveries.stop();
      await running.positions.stop();
      await running.log.stop();
      running.process.kill();
      this.#world.note(`${this.name} has stopped`);
    };
    time.after(0, () => void stop(), running.process);
    this.#world.network.breakServer(this.name);
  }

  freeze(): void {
    this.#running?.process.freeze();
  }

  thaw(): void {
    const { process } = this.#running ?? {};
    if (process?.isFrozen) process.thaw((run) => this.#world.time.after(0, run, process));
  }

  /** Somebody sets the clock of the machine. */
  setClock(aheadMs: number): void {
    if (this.#running) this.#running.process.clockAheadMs = aheadMs;
  }

  #client(holder: string): ClickHouseClient {
    const { clickhouse } = this.#world;
    return registerClient(
      (what, effect) => clickhouse.run(what, STATEMENT_MS_MAX, effect),
      (table, values) => this.#world.checkInsert(holder, table, values),
    );
  }
}
