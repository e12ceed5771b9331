import { printable } from '@sluice/shared/text/printable';
import { inColumns } from '../command/terminal.ts';
import { type Counts, differencesOf, type Hour, NO_COUNTS, sumOf } from './books.ts';
import type { AuditResult, ListedDifference } from './result.ts';
import { timeOf } from './window.ts';

/** The columns of the books, in their order. */
const COLUMNS = Object.keys(NO_COUNTS) as readonly (keyof Counts)[];

/** Hours without a difference are shown as one row of their day when there are more of them. */
const HOURS_SHOWN_MAX = 200;

/** Returns the result for people. */
export function linesOf(result: AuditResult | undefined): readonly string[] {
  if (!result) return ['There is nothing to look at yet: an hour is looked at when it has been over for ten minutes.'];
  const { sinceMs, untilMs, workspace, share, shares, hours, differences, notes } = result;
  const what = `${workspace === '' ? '' : ` of ${workspace}`}${shares === 1 ? '' : `, part ${share} of ${shares}`}`;
  const total = sumOf(hours);
  const wrong = differencesOf(total);
  return [
    `Received from ${timeOf(sinceMs)} to ${timeOf(untilMs)}${what}:`,
    ...(hours.length > 0 ? inColumns(tableOf(hours)) : []),
    ...notes.map((note) => `Note: ${printable(note)}`),
    ...differences.map(lineOf),
    ...(wrong > differences.length ? [`These are ${differences.length} of ${number(wrong)} differences.`] : []),
    wrong === 0
      ? `${number(total.accepted)} rows were accepted, and all are accounted for.`
      : `${number(total.accepted)} rows were accepted: ${number(total.missing)} missing, ${number(total.invented)} invented, ${number(total.duplicates)} stored twice.`,
  ];
}

function tableOf(hours: readonly Hour[]): readonly (readonly string[])[] {
  const names = COLUMNS.filter((name) => name === 'accepted' || hours.some(({ counts }) => counts[name] > 0));
  const header = ['workspace', 'hour', 'rows', ...names.map((name) => name.replaceAll('_', ' '))];
  const isLong = hours.length > HOURS_SHOWN_MAX;
  const groups = Map.groupBy(hours, ({ workspace, hour, kind, counts }) =>
    JSON.stringify([workspace, isLong && differencesOf(counts) === 0 ? dayOf(hour) : timeOf(hour * 1_000), kind]),
  );
  const row = (label: readonly string[], counts: Readonly<Counts>) => [
    ...label,
    ...names.map((name) => number(counts[name])),
  ];
  const rows = [...groups].map(([key, some]) => {
    const [workspace = '', time = '', kind = ''] = JSON.parse(key) as string[];
    return row([printable(workspace) || '(unknown)', time, kind], sumOf(some));
  });
  return [header, ...rows, row(['all', '', ''], sumOf(hours))];
}

function dayOf(hour: number): string {
  return new Date(hour * 1_000).toISOString().slice(0, 10);
}

function lineOf({
  workspace,
  kind,
  difference,
  key,
  topic,
  partition,
  offset,
  line,
  detail,
}: ListedDifference): string {
  const place = partition === null ? '' : ` at ${topic}/${partition}@${offset}:${line}`;
  return printable(`${difference}: ${kind} of ${workspace || '(unknown)'}, ${key}${place}. ${detail}`);
}

function number(value: number): string {
  return value.toLocaleString('en');
}

/** Returns the results for programs: one for each server. */
export function jsonOf(
  results: readonly { readonly server: string | undefined; readonly result: AuditResult | undefined }[],
): string {
  const audits = results.flatMap(({ server, result }) => (result ? [{ server, ...documentOf(result) }] : []));
  return JSON.stringify({ balanced: audits.every(({ balanced }) => balanced), audits }, undefined, 2);
}

function documentOf({
  id,
  sinceMs,
  untilMs,
  workspace,
  share,
  shares,
  hours,
  differences,
  notes,
  balancedThroughMs,
}: AuditResult) {
  const time = (ms: number) => new Date(ms).toISOString();
  const totals = sumOf(hours);
  return {
    ...{ id, balanced: differencesOf(totals) === 0, since: time(sinceMs), until: time(untilMs) },
    ...{ balancedThrough: time(balancedThroughMs), workspace: workspace || null, share, shares, totals },
    hours: hours.map(({ workspace: name, hour, kind, counts }) => ({
      ...{ workspace: name, hour: time(hour * 1_000), kind },
      ...counts,
    })),
    differences: differences.map(({ received, ...difference }) => ({
      ...difference,
      receivedAt: time(received / 1_000),
    })),
    notes,
  };
}
