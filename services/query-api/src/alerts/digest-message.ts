import { changeInPercent } from './alert-state.ts';
import type { Digest } from './digest.ts';
import { changeText, numberText, plainInSlack, slackBody, timeText } from './message-text.ts';

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
