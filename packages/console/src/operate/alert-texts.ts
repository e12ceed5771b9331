import { type Alert, type Digest, formatNumber, type StoredDashboard, type View } from '../base/base.ts';

export type Condition = Alert['condition'];

/** The kinds of conditions, as a form names them. */
export const CONDITIONS: Readonly<Record<Condition['is'], string>> = {
  above: 'is above',
  below: 'is below',
  changes: 'changes by at least, in percent',
  absent: 'is absent',
};

/** The units of windows, as a form names them. */
export const UNITS: Readonly<Record<string, string>> = { m: 'minutes', h: 'hours', d: 'days' };

/** Returns when an alert fires, as a person says it. */
export function conditionText({ condition, window, for: times }: Pick<Alert, 'condition' | 'window' | 'for'>): string {
  const [count, unit] = [window.slice(0, -1), window.at(-1) ?? ''];
  const length = count === '1' ? (UNITS[unit] ?? '').slice(0, -1) : `${count} ${UNITS[unit]}`;
  const often = times === 1 ? '' : `, ${times} times in a row`;
  return `${limitText(condition)} in the last ${length}${often}`;
}

function limitText(condition: Condition): string {
  if (condition.is === 'absent') return 'absent';
  if (condition.is === 'changes') return `changes by ${formatNumber(condition.percent)} % or more`;
  return `${condition.is} ${formatNumber(condition.threshold)}`;
}

/** Returns how an alert is, as a person says it. */
export function statusText({
  state,
  status,
  reason,
  firing,
}: Pick<Alert, 'state' | 'status' | 'reason' | 'firing'>): string {
  const known = {
    new: 'not evaluated yet',
    ok: 'ok',
    pending: 'pending',
    firing: 'firing',
    late: 'late',
    error: 'error',
  }[status];
  const why = reason === null ? '' : `: ${reason}`;
  const still = firing && status !== 'firing' ? ' (fires)' : '';
  return state === 'paused' ? `off, was ${known}` : `${known}${still}${why}`;
}

/** Returns the name of the view of an alert. */
export function viewName({ view }: Pick<Alert, 'view'>, views: readonly View[]): string {
  return views.find(({ id }) => id === view)?.name ?? 'a view';
}

export function dashboardName(
  { dashboard }: Pick<Digest, 'dashboard'>,
  dashboards: readonly StoredDashboard[],
): string {
  return dashboards.find(({ id }) => id === dashboard)?.name ?? 'a dashboard';
}

export function digestStatus({ state, status, reason }: Pick<Digest, 'state' | 'status' | 'reason'>): string {
  if (state === 'paused') return 'off';
  return reason === null ? status : `${status}: ${reason}`;
}
