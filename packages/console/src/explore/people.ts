import { type Calendar, formatBucket, hrefOf, parseRecords, splitList, without, zoneOf } from '../base/base.ts';
import { type GroupKey, labelOfKey } from '../charts/charts.ts';
import { type Report, reportParams } from './reports.ts';

/** The reports whose numbers have people behind them, by the parameter `report` of an address, and where these are. */
export const PEOPLE = {
  funnel: { path: 'events/funnel/people', own: ['step', 'dropped', 'group'] },
  retention: { path: 'events/retention/people', own: ['cohort', 'period'] },
} as const satisfies Partial<Record<Report, { readonly path: string; readonly own: readonly string[] }>>;

export type PeopleReport = keyof typeof PEOPLE;

/** A longer text may not fit into an address. */
const GROUP_MAX = 2_000;

/**
 * Returns the address of the people behind a number. It has the parameters of the API as they are, so that it shows the same
 * people wherever it is opened, and with other settings.
 *
 * @param params of the page of the report; without them there is no address
 * @param number the parameters that name the number, and those that the response has found out
 */
export function peopleHref(
  report: PeopleReport,
  params: URLSearchParams | undefined,
  calendar: Calendar,
  number: Readonly<Record<string, string>>,
): string | undefined {
  if (!params || (number['group']?.length ?? 0) > GROUP_MAX) return undefined;
  const query = reportParams(report, params, calendar, new Date());
  // The counts of all groups together are of no group.
  if (number['group'] === undefined) query.delete('groupBy');
  for (const [name, value] of Object.entries(number)) query.set(name, value);
  return hrefOf(['people'], new URLSearchParams([['report', report], ...query]));
}

/** Returns the report that an address of people is of, or what is wrong with it as a sentence. */
export function peopleReportOf(params: URLSearchParams): PeopleReport | { readonly fault: string } {
  const [report = '', ...others] = params.getAll('report');
  if (others.length > 0) return { fault: 'report is given more than once.' };
  if (Object.hasOwn(PEOPLE, report)) return report as PeopleReport;
  return { fault: `report must be one of ${Object.keys(PEOPLE).join(', ')}.` };
}

/** Returns the parameters of the page of the report. */
export function reportOfPeople(report: PeopleReport, params: URLSearchParams): URLSearchParams {
  return without(params, ...PEOPLE[report].own, 'limit', 'cursor');
}

/** Who is listed. */
export interface PeopleTitle {
  /** Where each of them has a page. */
  readonly path: 'users' | 'organizations';
  /** `Users who got to step 2`. */
  readonly text: string;
  /** What is known of each: the labels of `startedAt` and, where it says more, of `reachedAt`. */
  readonly times: readonly string[];
  /** The name of the step's event, if there is one. */
  readonly event?: string | undefined;
  /** The label of the group that they are in. Default: they are of all groups. */
  readonly group?: string | undefined;
}

/** Returns who an address lists. Of an address that the API will refuse, it says what can be said. */
export function titleOf(report: PeopleReport, params: URLSearchParams, calendar: Calendar): PeopleTitle {
  return report === 'funnel'
    ? titleOfStep(params)
    : { path: 'users', times: ['First event'], text: textOfCohort(params, calendar) };
}

function titleOfStep(params: URLSearchParams): PeopleTitle {
  const path = params.get('by') === 'organization' ? 'organizations' : 'users';
  const who = path === 'users' ? 'Users' : 'Organizations';
  const [step, group, isDropped] = [params.get('step') ?? '', params.get('group'), params.get('dropped') === 'true'];
  const reached = isDropped ? Number(step) - 1 : Number(step);
  return {
    path,
    times: ['Step 1', ...(reached > 1 ? [`Step ${reached}`] : [])],
    text: `${who} who ${isDropped ? 'dropped out before' : 'got to'} step ${step}`,
    event: splitList(params.get('steps') ?? '')[Number(step) - 1],
    group: group === null ? undefined : labelOfGroup(group),
  };
}

function labelOfGroup(json: string): string {
  try {
    return labelOfKey(parseRecords(json) as GroupKey);
  } catch {
    return json;
  }
}

function textOfCohort(params: URLSearchParams, calendar: Calendar): string {
  const [interval, cohort, period] = [
    params.get('interval') ?? 'day',
    params.get('cohort') ?? '',
    params.get('period'),
  ];
  const isTime = !Number.isNaN(Date.parse(cohort));
  const users = `Users of the cohort of ${isTime ? formatBucket(cohort, interval, zoneOf(params, calendar)) : cohort}`;
  if (period === null) return users;
  if (period === '0') return `${users} who came back in the same ${interval}`;
  return `${users} who came back ${period} ${interval}${period === '1' ? '' : 's'} later`;
}
