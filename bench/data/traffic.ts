import { createHash } from 'node:crypto';
import type { RowBatch } from '@sluice/storage/protocol/row-batch';
import { seededRandom } from '../../tests/kit/random.ts';
import { batchOf } from './rows.ts';

export const DAY_MS = 86_400_000;

/** Three years, in days. */
export const LONG_DAYS = 1_080;

/** The default number of days over which the events are spread. */
const TRAFFIC_DAYS = 90;

/** The first workspace has most of the events, like the largest customer of a service. */
export const WORKSPACES = ['acme', 'globex', 'initech', 'umbrella', 'hooli'] as const;
const WORKSPACE_SHARES = [0.7, 0.15, 0.1, 0.04, 0.01];

const USERS = 300_000;
const ORGANIZATIONS = 20_000;
const ANONYMOUS = 500_000;
const INSTANCES = 100_000;

const EVENT_NAMES = [
  ...['page_viewed', 'search_performed', 'report_opened', 'file_uploaded', 'comment_added', 'signed_in', 'task_moved'],
  ...['member_invited', 'export_started', 'filter_saved', 'dashboard_shared', 'alert_raised', 'plan_changed'],
  ...[
    'invoice_paid',
    'api_key_created',
    'webhook_failed',
    'trial_started',
    'seat_added',
    'account_closed',
    'sso_enabled',
  ],
] as const;

const TITLES = ['Quarterly planning', 'Release checklist', 'Onboarding', 'Invoices', 'Roadmap', 'Hiring'];
const PLANS = ['free', 'team', 'business', 'enterprise'];
const SOURCES = ['menu', 'shortcut', 'invitation by a colleague', 'newsletter', 'search engine'];
const SYSTEMS = ['Windows', 'macOS', 'iOS', 'Android', 'Linux'];
const LOCALES = ['en-GB', 'en-US', 'de-DE', 'fr-FR', 'pt-BR', 'ja-JP', 'es-ES', 'nl-NL', 'sv-SE', 'pl-PL'];

/** The share of events that come in bursts, and the size and length of a burst. */
const BURST_SHARE = 0.05;
const BURST_EVENTS = 5_000;
const BURST_MS = 2_000;

const LATE_SHARE = 0.01;

const SEED = 1;

/** Events in the order of their arrival, always the same. */
export interface Traffic {
  /** The next events, as the writer reads them from Kafka. */
  next(rows: number): RowBatch;
}

/**
 * Creates traffic as skewed as a product's: a few users and organizations have most of the events (Zipf's law), some
 * events come in bursts, and one in a hundred is up to 30 days late. An event has some 800 bytes and about fifteen
 * properties with few or many values, some of them nested.
 *
 * @param events how many there are in all
 * @param endMs the time of the last one, in milliseconds since 1970
 * @param days over how many days they are spread
 */
export function createTraffic(events: number, endMs: number, days = TRAFFIC_DAYS): Traffic {
  const random = seededRandom(SEED);
  const below = (count: number) => Math.floor(count * random());
  const hex = (digits: number) =>
    below(16 ** digits)
      .toString(16)
      .padStart(digits, '0');
  const workspace = weighted(WORKSPACE_SHARES, random);
  const user = weighted(zipf(USERS, 1), random);
  const organization = weighted(zipf(ORGANIZATIONS, 0.9), random);
  const anonymous = weighted(zipf(ANONYMOUS, 0.8), random);
  const instance = weighted(zipf(INSTANCES, 0.8), random);
  const name = weighted(zipf(EVENT_NAMES.length, 1.2), random);
  const page = weighted(zipf(10_000, 1), random);
  const system = weighted(zipf(SYSTEMS.length, 0.8), random);
  const locale = weighted(zipf(LOCALES.length, 1), random);

  const arrivals = new Arrivals(random, events, endMs, days);

  function row(): string {
    const receivedMs = arrivals.nextMs();
    const atMs = random() < LATE_SHARE ? receivedMs - below(30 * DAY_MS) : receivedMs - below(2_000);
    const userRank = user();
    const known = random() < 0.9;
    const identifiers =
      (known ? `"user_id":"user-${userRank}",` : '') +
      (random() < 0.95 ? `"group_id":"org-${organization()}",` : '') +
      (known && random() < 0.6 ? '' : `"anonymous_id":"anon-${anonymous().toString(36)}",`) +
      (random() < 0.5 ? `"instance_id":"instance-${instance().toString(36)}",` : '');
    const uuid = `${uuidTime(receivedMs)}-7${hex(3)}-${(8 + below(4)).toString(16)}${hex(3)}-${hex(6)}${hex(6)}`;
    return (
      `{"workspace_id":"${WORKSPACES[workspace()]}","timestamp":${atMs},"uuid":"${uuid}",` +
      `"event":"${EVENT_NAMES[name()]}",${identifiers}` +
      `"properties":{"url":"https://app.example.com/teams/${below(500)}/projects/${page()}?tab=activity&ref=email",` +
      `"title":"${TITLES[below(6)]} · Team ${userRank % 500}","sessionId":"${sessionId(userRank, receivedMs)}",` +
      `"plan":"${PLANS[userRank % 4]}","seats":${1 + below(500)},"trial":${random() < 0.1},` +
      `"path":"/teams/${page()}/members","source":"${SOURCES[below(5)]}","amount":${below(1e6) / 100},` +
      `"requestId":"${hex(8)}","tags":["web","${LOCALES[below(3)]}"],` +
      `"device":{"os":"${SYSTEMS[system()]}","version":"${10 + below(8)}.${below(10)}","memory":${2 ** below(5)}}},` +
      `"context":{"locale":"${LOCALES[locale()]}","library":{"name":"sluice-js","version":"1.4.${below(3)}"},` +
      `"page":{"title":"Members of the team","referrer":"https://example.com/start"}},"received_at":${receivedMs * 1_000 + below(1_000)}}`
    );
  }

  return { next: (rows) => batchOf(rows, row) };
}

/** The times of arrival. They advance evenly, but jump before a burst and hardly move during it. */
class Arrivals {
  readonly #random: () => number;
  readonly #endMs: number;
  readonly #stepMs: number;
  #nowMs: number;
  #burstLeft = 0;

  constructor(random: () => number, events: number, endMs: number, days: number) {
    this.#random = random;
    this.#endMs = endMs;
    this.#stepMs = (days * DAY_MS) / events;
    this.#nowMs = endMs - days * DAY_MS;
  }

  nextMs(): number {
    if (this.#burstLeft === 0 && this.#random() < BURST_SHARE / BURST_EVENTS) {
      this.#burstLeft = BURST_EVENTS;
      this.#nowMs += this.#stepMs * BURST_EVENTS - BURST_MS;
    }
    if (this.#burstLeft > 0) this.#burstLeft -= 1;
    this.#nowMs += this.#burstLeft > 0 ? BURST_MS / BURST_EVENTS : this.#stepMs;
    return Math.min(Math.floor(this.#nowMs), this.#endMs);
  }
}

/** A session is an hour of a user. */
function sessionId(userRank: number, ms: number): string {
  return createHash('md5')
    .update(`${userRank} ${Math.floor(ms / 3_600_000)}`)
    .digest('hex');
}

/** The first 48 bits of a UUIDv7. */
function uuidTime(ms: number): string {
  const digits = ms.toString(16).padStart(12, '0');
  return `${digits.slice(0, 8)}-${digits.slice(8)}`;
}

/** Zipf's law: the weights of `count` things, the most frequent first. */
function zipf(count: number, exponent: number): number[] {
  return Array.from({ length: count }, (_, rank) => (rank + 1) ** -exponent);
}

/** Returns a function that draws an index with the probability of its weight. */
function weighted(weights: readonly number[], random: () => number): () => number {
  const sums = new Float64Array(weights.length);
  let sum = 0;
  for (const [index, weight] of weights.entries()) {
    sum += weight;
    sums[index] = sum;
  }
  return () => {
    const drawn = random() * sum;
    let low = 0;
    for (let high = sums.length - 1; low < high; ) {
      const middle = (low + high) >> 1;
      if ((sums[middle] as number) > drawn) high = middle;
      else low = middle + 1;
    }
    return low;
  };
}
