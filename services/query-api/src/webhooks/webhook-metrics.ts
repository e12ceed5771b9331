import { Counter, Gauge, type Registry } from 'prom-client';
import { PAUSE_REASONS, type PauseReason } from './webhook.ts';

/** Why webhooks are paused that no client has paused. */
const OWN_REASONS = PAUSE_REASONS.filter((reason) => reason !== 'client');

/** What the gauges show. */
export interface WebhookReadings {
  readonly lagSeconds: number;
  readonly held: number;
  /** Why each webhook is paused that is paused now. */
  readonly paused: readonly (PauseReason | '')[];
}

/** The metrics of webhooks. No label names one: there may be any number of them. */
export class WebhookMetrics {
  readonly deliveredEvents: Counter;
  readonly attempts: Counter<'outcome'>;
  readonly paused: Counter<'reason'>;
  #read: () => WebhookReadings = () => ({ lagSeconds: 0, held: 0, paused: [] });

  /** Declares them in a registry. */
  constructor(registry: Registry) {
    const registers = [registry];
    const read = () => this.#read();
    this.deliveredEvents = new Counter({
      name: 'sluice_webhook_events_total',
      help: 'Events that receivers of webhooks have taken.',
      registers,
    });
    this.attempts = new Counter({
      name: 'sluice_webhook_attempts_total',
      help: 'Attempts to deliver to webhooks, by outcome: delivered or failed.',
      labelNames: ['outcome'],
      registers,
    });
    for (const outcome of ['delivered', 'failed']) this.attempts.inc({ outcome }, 0);
    this.paused = new Counter({
      name: 'sluice_webhook_pauses_total',
      help: 'Webhooks that were paused because their events cannot be delivered, by reason.',
      labelNames: ['reason'],
      registers,
    });
    for (const reason of OWN_REASONS) this.paused.inc({ reason }, 0);
    new Gauge({
      name: 'sluice_webhooks_paused',
      help: 'Webhooks of all workspaces that are paused because their events cannot be delivered, by reason.',
      labelNames: ['reason'],
      registers,
      collect() {
        const { paused } = read();
        for (const reason of OWN_REASONS) this.set({ reason }, paused.filter((one) => one === reason).length);
      },
    });
    new Gauge({
      name: 'sluice_webhooks_held',
      help: 'Active webhooks that this instance delivers.',
      registers,
      collect() {
        this.set(read().held);
      },
    });
    new Gauge({
      name: 'sluice_webhook_lag_seconds',
      help: 'How long ago the oldest event was received that a webhook of this instance has not delivered yet.',
      registers,
      collect() {
        this.set(read().lagSeconds);
      },
    });
  }

  /** From now on the gauges read their values here. */
  observe(read: () => WebhookReadings): void {
    this.#read = read;
  }
}
