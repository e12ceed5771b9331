import type { RowBatch } from '../services/writer/src/batches/row-batch.ts';
import { seededRandom } from '../tests/support/random.ts';
import { batchOf } from './rows.ts';

const DAY_MS = 86_400_000;

/** The days over which the events are spread. */
export const TRAFFIC_DAYS = 90;

/** One workspace has most of the events, as one customer of a service has. */
export const WORKSPACES = ['acme', 'globex', 'initech', 'umbrella', 'hooli'] as const;
const WORKSPACE_SHARES = [0.7, 0.15, 0.1, 0.04, 0.01];

const USERS = 300_000;
const ORGANIZATIONS = 20_000;
const ANONYMOUS = 500_000;
const INSTANCES = 100_000;

export const EVENT_NAMES = [
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

const PLANS = ['free', 'team', 'business', 'enterprise'];
const SOURCES = ['menu', 'shortcut', 'invitation by a colleague', 'newsletter', 'search engine'];
const SYSTEMS = ['Windows', 'macOS', 'iOS', 'Android', 'Linux'];
const LOCALES = ['en-GB', 'en-US', 'de-DE', 'fr-FR', 'pt-BR', 'ja-JP', 'es-ES', 'nl-NL', 'sv-SE', 'pl-PL'];

/** Events a second between which and the next a burst comes, and how many it holds. */
const BURST_SHARE = 0.05;
const BURST_EVENTS = 5_000;
const BURST_MS = 2_000;

const LATE_SHARE = 0.01;

/** Events as producers send them, in the order of their arrival, the same ones for the same seed. */
export interface Traffic {
  /** The next events, as the writer gets them from Kafka. */
  next(rows: number): RowBatch;
}

/**
 * Product traffic of skew as it is found: few users and organizations have most of the events (Zipf's law), some events
 * come in bursts, and one in a hundred is late by up to 30 days. An event has some 600 bytes, about ten properties of
 * few and of many values, nested ones among them.
 *
 * @param events over how many the days are spread
 * @param endMs when the last one happens, in milliseconds since 1970
 */
export function createTraffic(events: number, endMs: number, seed = 1): Traffic {
  const random = seededRandom(seed);
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

  const stepMs = (TRAFFIC_DAYS * DAY_MS) / events;
  let nowMs = endMs - TRAFFIC_DAYS * DAY_MS;
  let burstLeft = 0;

  /** Time goes on as fast as it must to end in time; bursts stand almost still, and what they saved passes before. */
  function tick(): number {
    if (burstLeft === 0 && random() < BURST_SHARE / BURST_EVENTS) {
      burstLeft = BURST_EVENTS;
      nowMs += stepMs * BURST_EVENTS - BURST_MS;
    }
    if (burstLeft > 0) burstLeft -= 1;
    nowMs += burstLeft > 0 ? BURST_MS / BURST_EVENTS : stepMs;
    return Math.min(Math.floor(nowMs), endMs);
  }

  function row(): string {
    const receivedMs = tick();
    const atMs = random() < LATE_SHARE ? receivedMs - below(30 * DAY_MS) : receivedMs - below(2_000);
    const userRank = user();
    const known = random() < 0.9;
    // Its low digits tell the user apart from others in the same organization.
    const identifiers =
      (known ? `"user_id":"user-${userRank}",` : '') +
      (random() < 0.95 ? `"group_id":"org-${organization()}",` : '') +
      (known && random() < 0.6 ? '' : `"anonymous_id":"anon-${anonymous().toString(36)}",`) +
      (random() < 0.5 ? `"instance_id":"instance-${instance().toString(36)}",` : '');
    const uuid = `${uuidTime(receivedMs)}-7${hex(3)}-${(8 + below(4)).toString(16)}${hex(3)}-${hex(6)}${hex(6)}`;
    return (
      `{"workspace_id":"${WORKSPACES[workspace()]}","timestamp":${atMs},"uuid":"${uuid}",` +
      `"event":"${EVENT_NAMES[name()]}",${identifiers}` +
      `"properties":{"plan":"${PLANS[userRank % 4]}","seats":${1 + below(500)},"trial":${random() < 0.1},` +
      `"path":"/teams/${page()}/members","source":"${SOURCES[below(5)]}","amount":${below(1e6) / 100},` +
      `"requestId":"${hex(8)}","tags":["web","${LOCALES[below(3)]}"],` +
      `"device":{"os":"${SYSTEMS[system()]}","version":"${10 + below(8)}.${below(10)}","memory":${2 ** below(5)}}},` +
      `"context":{"locale":"${LOCALES[locale()]}","library":{"name":"sluice-js","version":"1.4.${below(3)}"},` +
      `"page":{"title":"Members of the team","referrer":"https://example.com/start"}},"received_at":${receivedMs * 1_000 + below(1_000)}}`
    );
  }

  return { next: (rows) => batchOf(rows, row) };
}

/** The first 48 bits of a UUIDv7. */
function uuidTime(ms: number): string {
  const digits = ms.toString(16).padStart(12, '0');
  return `${digits.slice(0, 8)}-${digits.slice(8)}`;
}

/** Zipf's law: how often each of `count` things is met, the most frequent first. */
function zipf(count: number, exponent: number): number[] {
  return Array.from({ length: count }, (_, rank) => (rank + 1) ** -exponent);
}

/** Draws indexes as often as their weights say. */
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
