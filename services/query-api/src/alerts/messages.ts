import type { Alert, Condition } from './alert.ts';
import { type AlertState, changeInPercent } from './alert-state.ts';
import type { TimeSpan } from './alert-window.ts';
import type { Digest } from './digest.ts';

// What receivers get: JSON, or a text for Slack.

/** What may become formatting, a link, a name or an emoji: each is parted from what follows by a character without width. */
const SPECIAL = /[*_~`|:./@#]/g;
const WITHOUT_WIDTH = '\u2060';

/** What a message is about. */
export interface ChangedAlert {
  readonly id: string;
  /** The id of the message. */
  readonly message: string;
  readonly alert: Alert;
  readonly viewName: string;
  readonly state: AlertState;
  readonly window: TimeSpan;
}

/** Returns the body of the message that an alert fires, or no longer does. */
export function alertBody({ id, message, alert, viewName, state, window }: ChangedAlert): string {
  const { value, before, firing } = state;
  const { condition, format, name } = alert;
  if (format === 'slack') {
    const from = `from ${timeText(window.startMs)} to ${timeText(window.endMs)}`;
    const number = `${plainInSlack(viewName)}: ${numberText(value)} ${from}`;
    return JSON.stringify(
      slackBody(
        `${firing ? 'Firing' : 'Resolved'}: ${plainInSlack(name)}. ${number} (${limitText(condition, before)}).`,
      ),
    );
  }
  return JSON.stringify({
    type: 'alert',
    timestamp: new Date(window.endMs).toISOString(),
    data: {
      id: message,
      state: firing ? 'firing' : 'resolved',
      alert: { id, name },
      view: { id: alert.view, name: viewName },
      ...{ value, before, condition, window: alert.window, for: alert.for },
      ...{ startDate: new Date(window.startMs).toISOString(), endDate: new Date(window.endMs).toISOString() },
    },
  });
}

function limitText(condition: Condition, before: number | null): string {
  if (condition.is === 'absent') return 'fires while it is absent';
  if (condition.is === 'changes')
    return `before: ${numberText(before)}; fires at ${numberText(condition.percent)} % of change`;
  return `fires ${condition.is} ${numberText(condition.threshold)}`;
}

/** The number of a tile, over its range and over the time before. */
export interface DigestNumber {
  readonly view: { readonly id: string; readonly name: string };
  readonly value: number | null;
  readonly before: number | null;
  /** Why it could not be read. */
  readonly error: string | null;
}

export interface DueDigest {
  readonly id: string;
  /** The id of the message. */
  readonly message: string;
  readonly digest: Digest;
  readonly dashboardName: string;
  readonly dueMs: number;
  /** Up to when the numbers are. */
  readonly endMs: number;
  readonly numbers: readonly DigestNumber[];
}

/** Returns the body of a digest. */
export function digestBody({ id, message, digest, dashboardName, dueMs, endMs, numbers }: DueDigest): string {
  if (digest.format === 'slack') {
    const head = `${plainInSlack(dashboardName)}, up to ${timeText(endMs)}`;
    return JSON.stringify(slackBody([head, ...numbers.map(lineOf)].join('\n')));
  }
  return JSON.stringify({
    type: 'digest',
    timestamp: new Date(dueMs).toISOString(),
    data: {
      ...{ id: message, digest: { id }, dashboard: { id: digest.dashboard, name: dashboardName } },
      endDate: new Date(endMs).toISOString(),
      numbers: numbers.map((one) => ({ ...one, changePercent: finite(changeInPercent(one.value, one.before)) })),
    },
  });
}

function lineOf({ view, value, before, error }: DigestNumber): string {
  const name = plainInSlack(view.name);
  if (error !== null) return `• ${name}: not known, ${plainInSlack(error)}`;
  return `• ${name}: ${numberText(value)} (before: ${numberText(before)}, ${changeText(changeInPercent(value, before))})`;
}

/** JSON has no infinite number. */
function finite(change: number | undefined): number | null {
  return change !== undefined && Number.isFinite(change) ? change : null;
}

/** Returns a text from outside as a part of a text for Slack, which shows it as it is (https://api.slack.com/reference/surfaces/formatting). */
export function plainInSlack(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ');
  const escaped = line.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  return escaped.replaceAll(SPECIAL, `$&${WITHOUT_WIDTH}`);
}

/** Returns the body that Slack and others take. They format nothing of it. */
export function slackBody(text: string): object {
  return { text, mrkdwn: false };
}

export function timeText(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}

export function numberText(value: number | null): string {
  return value === null ? 'no number' : new Intl.NumberFormat('en', { maximumFractionDigits: 2 }).format(value);
}

/** Returns a change in percent as a text. */
export function changeText(change: number | undefined): string {
  if (change === undefined) return 'no change known';
  if (!Number.isFinite(change)) return 'from 0';
  return `${change > 0 ? '+' : ''}${numberText(change)} %`;
}
