import { randomUUID } from 'node:crypto';
import type { Logger } from '@sluice/shared/base/log';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import type { MemoryBudget } from '@sluice/shared/http/memory-budget';
import type { Component } from '@sluice/shared/service/lifecycle';
import type { QueryConfig } from '../config.ts';
import type { QueryRunner, Stores } from '../store/store.ts';
import { AllowedAddresses } from './allowed-addresses.ts';
import { AttemptPlaces } from './attempt-places.ts';
import { DeliveryLog } from './delivery-log.ts';
import type { OpenSource } from './delivery-source.ts';
import { eventSources } from './event-source.ts';
import { HttpSender } from './http-sender.ts';
import { KnownWebhooks } from './known-webhooks.ts';
import { ReceiverNames } from './receiver-names.ts';
import { ShownEvents } from './shown-events.ts';
import type { WebhookKind } from './webhook.ts';
import { WebhookDeliveries } from './webhook-deliveries.ts';
import { WebhookLeases } from './webhook-leases.ts';
import type { WebhookMetrics } from './webhook-metrics.ts';
import { WebhookPositions } from './webhook-positions.ts';
import { WebhookRegister } from './webhook-register.ts';
import type { StreamSource } from './webhook-stream.ts';

/** A changed segment is in force for every webhook that names it after so many milliseconds, and its next position. */
const SEGMENTS_MS_MAX = 60_000;

export interface WebhooksOptions {
  readonly config: QueryConfig;
  /** With the account that stores the state of webhooks. */
  readonly client: ClickHouseClient;
  /** The name of the replica that the client reaches. Undefined where ClickHouse does not replicate the tables. */
  readonly replica: string | undefined;
  readonly streams: StreamSource;
  /** That of all requests. */
  readonly memory: Pick<MemoryBudget, 'open'>;
  readonly queryRunner: Pick<QueryRunner, 'all'>;
  readonly stores: Stores;
  /** Returns what opens the webhooks of other kinds than events. */
  readonly numberSources: (
    find: WebhookRegister['find'],
  ) => Readonly<Record<Exclude<WebhookKind, 'events'>, OpenSource>>;
  readonly metrics: WebhookMetrics;
  readonly logger: Logger;
}

/** Everything about webhooks in this instance: what is stored, and where it is on, the deliveries. */
export class Webhooks implements Component {
  readonly name = 'webhooks';
  readonly addresses: AllowedAddresses;
  readonly register: WebhookRegister;
  readonly leases: WebhookLeases;
  readonly positions: WebhookPositions;
  readonly log: DeliveryLog;
  readonly sender: HttpSender;
  readonly places: AttemptPlaces;
  readonly #deliveries: WebhookDeliveries | undefined;

  constructor(options: WebhooksOptions) {
    const { config, client, replica, streams, memory, queryRunner, stores, numberSources, metrics, logger } = options;
    const { WEBHOOK_LEASE_MS: leaseMs, WEBHOOK_TIMEOUT_MS: timeoutMs } = config;
    this.addresses = new AllowedAddresses(config.WEBHOOK_ALLOW_NETWORKS);
    this.register = new WebhookRegister(client);
    this.leases = new WebhookLeases(client, randomUUID(), leaseMs, replica);
    this.positions = new WebhookPositions(client, logger);
    this.log = new DeliveryLog(client, logger);
    const names = new ReceiverNames({ servers: config.WEBHOOK_DNS_SERVERS });
    this.sender = new HttpSender({ addresses: this.addresses, names, timeoutMs });
    this.places = new AttemptPlaces(config.WEBHOOK_ATTEMPTS_PER_WORKSPACE);
    if (!config.WEBHOOK_DELIVERY) return;
    const { register, leases, positions, log, sender, places } = this;
    const shown = new ShownEvents({ config, queryRunner, stores });
    const events = eventSources({ streams, memory, shown, segmentsMsMax: SEGMENTS_MS_MAX });
    const sources = { events, ...numberSources((workspace, id) => register.find(workspace, id)) };
    this.#deliveries = new WebhookDeliveries({
      ...{ known: new KnownWebhooks(client, replica !== undefined), register, leases, leaseMs, metrics, logger },
      deliverer: {
        open: (webhook, position) => sources[webhook.kind](webhook, position),
        ...{ places, sender, positions, log },
        ...{ retryMsMax: config.WEBHOOK_RETRY_MS_MAX, giveUpMs: config.WEBHOOK_GIVE_UP_MS },
      },
    });
  }

  async start(): Promise<void> {
    this.#deliveries?.start();
  }

  async stop(): Promise<void> {
    await this.#deliveries?.stop();
    await this.positions.stop();
    await this.log.stop();
    this.sender.close();
  }
}
