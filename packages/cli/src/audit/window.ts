import { ArgumentsError, Refused } from '@sluice/shared/config/command-line';
import type { PartitionLog } from './topic-logs.ts';

const HOUR_MS = 3_600_000;

/**
 * How long an hour has to be over, in milliseconds. By then all that was received in it is in the log: clocks differ by seconds,
 * and requests that are under way come to their end.
 */
const OVER_MS = 600_000;

/**
 * By how much a time of receipt may differ from the time at which Kafka took the record, in milliseconds, and within which time
 * an event without a time of its own is a repeat: what is so near to the window is read as well.
 */
export const MARGIN_MS = 900_000;

/** How far the time of receipt of a row may be from that of the record before, in milliseconds: clocks, and a request's time. */
const TAKEN_WITHIN_MS = 120_000;

/** Hours of receipt, in milliseconds since 1970: from `sinceMs` on, before `untilMs`. */
export interface Window {
  readonly sinceMs: number;
  readonly untilMs: number;
}

/** What the arguments ask for. */
export interface WantedWindow {
  readonly sinceMs: number | undefined;
  readonly untilMs: number | undefined;
}

/** How the note begins that says that the log no longer had the begin of a window. */
export const CUT_NOTE = 'The log was cut: ';

/** A complete audit of everything, in seconds since 1970. */
export interface AuditBefore {
  readonly began: number;
  readonly ended: number;
  readonly balanced: number;
  readonly was_cut: 0 | 1;
}

/**
 * Returns how far audits found everything balanced, without a gap but for what the log no longer had.
 *
 * @param audits in the order in which they ended
 * @returns milliseconds since 1970; `undefined` without an audit
 */
export function balancedThrough(audits: readonly AuditBefore[]): number | undefined {
  let through: number | undefined;
  for (const { began, ended, balanced, was_cut } of audits) {
    const goesOn = through === undefined || was_cut === 1 || (began <= through && ended >= through);
    if (goesOn) through = balanced;
  }
  return through === undefined ? undefined : through * 1_000;
}

/**
 * Returns the window of an audit, and what has to be said of it; `undefined` where there is no whole hour.
 *
 * @param balancedMs how far the last audit found everything balanced
 * @throws {Refused} when the log no longer has any of what is asked for, or an hour is not over yet
 */
export function decideWindow(
  logs: readonly PartitionLog[],
  wanted: WantedWindow,
  balancedMs: number | undefined,
  nowMs: number,
): { readonly window: Window; readonly notes: readonly string[] } | undefined {
  const lastMs = wholeHour(nowMs - OVER_MS);
  const untilMs = wholeHour(wanted.untilMs ?? lastMs);
  if (untilMs > lastMs) {
    throw new Refused(
      `--until may be at most ${timeOf(lastMs)}: an hour is looked at when it has been over for ten minutes.`,
    );
  }
  const firsts = logs.flatMap(({ firstMs }) => firstMs ?? []);
  if (firsts.length === 0) return undefined;
  const cut = logs.filter(({ wholeFromMs }) => wholeFromMs > 0);
  const wholeFromMs = Math.max(0, ...cut.map((log) => log.wholeFromMs));
  // Clocks of ingest-api may be ahead of Kafka's.
  const firstMs = cut.length === 0 ? 0 : Math.ceil((wholeFromMs + TAKEN_WITHIN_MS) / HOUR_MS) * HOUR_MS;
  const beginMs = wholeHour(Math.min(...firsts) - TAKEN_WITHIN_MS);
  const sinceMs = wholeHour(wanted.sinceMs ?? balancedMs ?? beginMs);
  const notes: string[] = [];
  if (sinceMs < firstMs) {
    const latest = cut.find((log) => log.wholeFromMs === wholeFromMs);
    if (wanted.sinceMs !== undefined || balancedMs !== undefined) {
      notes.push(
        `${CUT_NOTE}${latest?.topic}/${latest?.partition} begins at offset ${latest?.low}, so that rows which were received before ` +
          `${timeOf(firstMs)} cannot be looked at.`,
      );
    }
  }
  const window = { sinceMs: Math.max(sinceMs, firstMs), untilMs };
  if (window.sinceMs < window.untilMs) return { window, notes };
  if (wanted.sinceMs === undefined && wanted.untilMs === undefined) return undefined;
  throw new Refused(
    sinceMs < untilMs
      ? `The log no longer has what was received before ${timeOf(firstMs)}.`
      : `--since has to be at least an hour before ${timeOf(untilMs)}.`,
  );
}

function wholeHour(ms: number): number {
  return Math.floor(ms / HOUR_MS) * HOUR_MS;
}

/** A time as `2026-11-30 07:00` in UTC. */
export function timeOf(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}

const AGO = /^(\d{1,6})(d|h)$/;

/**
 * Reads a time: `7d` or `24h` ago, or as `2026-11-30T07:00Z`.
 *
 * @returns milliseconds since 1970
 * @throws {ArgumentsError}
 */
export function parseTime(option: string, text: string, nowMs: number): number {
  const [, number, unit] = AGO.exec(text) ?? [];
  if (number !== undefined) return nowMs - Number(number) * (unit === 'd' ? 24 : 1) * HOUR_MS;
  const ms = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d)?Z)?$/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(ms)) {
    throw new ArgumentsError(
      `${option} must be a time such as 2026-11-30T07:00Z or 2026-11-30, or 7d or 24h: so long ago.`,
    );
  }
  return ms;
}
