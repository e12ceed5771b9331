import { randomBytes } from 'node:crypto';
import type { Replaced } from '../store/store.ts';

/** Why a webhook is paused: a client did so, the receiver is gone (410), it failed for too long, or its position is lost. */
export const PAUSE_REASONS = ['client', 'gone', 'failing', 'position_lost', 'filter'] as const;
export type PauseReason = (typeof PAUSE_REASONS)[number];

/** What webhooks send: events, the changes of an alert, or a digest of a dashboard. */
export type WebhookKind = 'events' | 'alert' | 'digest';

/** Where something of a workspace is sent. */
export interface Webhook {
  readonly id: string;
  readonly workspace: string;
  readonly kind: WebhookKind;
  readonly url: string;
  /** Parameters of `GET /events/stream`. */
  readonly filter: Readonly<Record<string, string>>;
  /** Whether a delivery has several events. */
  readonly batched: boolean;
  /** What clients have set besides, of a kind other than events. */
  readonly content: Readonly<Record<string, unknown>>;
  readonly secret: string;
  /** Signs as well until a time; empty without one. */
  readonly previousSecret: string;
  /** In milliseconds since 1970. */
  readonly previousSecretUntilMs: number;
  readonly createdAtMs: number;
}

/** Whether a webhook is delivered. */
export interface WebhookState {
  readonly state: 'active' | 'paused';
  /** Empty while it is active. */
  readonly reason: PauseReason | '';
  /** In milliseconds since 1970. */
  readonly sinceMs: number;
}

/** How far a webhook is delivered. */
export interface WebhookProgress {
  readonly epoch: number;
  /** Of events an id of `GET /events/stream`; of other kinds the state of their source, as JSON. */
  readonly position: string;
  /** The position at the end of the delivery under way, if that must have the same events after a restart; otherwise empty. */
  readonly sendingTo: string;
  /** Failed attempts since the last delivery. */
  readonly attempts: number;
  /**
   * For how long attempts had failed at the last one, in milliseconds; 0 while they do not. Instances that deliver count it, so
   * no clock that is set, and no time without an instance, changes it.
   */
  readonly failingMs: number;
  /** How many lines the log of deliveries has got. */
  readonly logLines: number;
}

/** A webhook with everything that is stored of it. */
export interface StoredWebhook {
  readonly webhook: Webhook;
  readonly state: WebhookState;
  /** The rows that the next change of the webhook, and that of its state, replace. */
  readonly rows: { readonly webhook: Replaced; readonly state: Replaced };
  /** Undefined before its first position is stored. */
  readonly progress: WebhookProgress | undefined;
  /** Since when attempts fail, by the clock of the last one, in milliseconds since 1970; 0 while they do not. */
  readonly failingSinceMs: number;
}

/** How long the secret before signs as well, in milliseconds. */
export const ROTATION_MS = 86_400_000;

const SECRET_PREFIX = 'whsec_';

/** Returns a new secret in the form of Standard Webhooks: `whsec_` and 32 random bytes in base64. */
export function newSecret(): string {
  return SECRET_PREFIX + randomBytes(32).toString('base64');
}

/** Returns the secrets that sign at a time, in milliseconds since 1970: two while they are rotated. */
export function secretsOf(webhook: Webhook, nowMs: number): readonly string[] {
  const { secret, previousSecret, previousSecretUntilMs } = webhook;
  return previousSecret !== '' && nowMs < previousSecretUntilMs ? [secret, previousSecret] : [secret];
}
