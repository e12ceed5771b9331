import { type Calendar, formatBucket, hrefOf, parseRecords, splitList, without, zoneOf } from '../base/base.ts';
import { type GroupKey, labelOfKey } from '../charts/charts.ts';
import { type Report, reportParams } from './reports.ts';

/** The reports whose numbers have people behind them, by the parameter `report` of an address, and where these are. */
export const PEOPLE = {
  funnel: { path: 'events/funnel/people', own: ['step', 'dropped', 'group'] },
  retention: { path: 'events/retention/people', own: ['cohort', 'period', 'group'] },
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
  return report === 'funnel' ? titleOfStep(params) : titleOfCohort(params, calendar);
}

/** Returns who a funnel or retention counts; the response does not say. */
export function whoOf(params: URLSearchParams): 'Users' | 'Organizations' {
  return params.get('by') === 'organization' ? 'Organizations' : 'Users';
}

function titleOfStep(params: URLSearchParams): PeopleTitle {
  const who = whoOf(params);
  const [step, isDropped] = [params.get('step') ?? '', params.get('dropped') === 'true'];
  const reached = isDropped ? Number(step) - 1 : Number(step);
  return {
    path: who === 'Users' ? 'users' : 'organizations',
    times: ['Step 1', ...(reached > 1 ? [`Step ${reached}`] : [])],
    text: `${who} who ${isDropped ? 'dropped out before' : 'got to'} step ${step}`,
    event: splitList(params.get('steps') ?? '')[Number(step) - 1],
    group: labelOfGroup(params),
  };
}

function labelOfGroup(params: URLSearchParams): string | undefined {
  const json = params.get('group');
  if (json === null) return undefined;
  try {
    return labelOfKey(parseRecords(json) as GroupKey);
  } catch {
    return json;
  }
}

function titleOfCohort(params: URLSearchParams, calendar: Calendar): PeopleTitle {
  const who = whoOf(params);
  return {
    path: who === 'Users' ? 'users' : 'organizations',
    times: ['First event'],
    text: `${who} ${textOfCohort(params, calendar)}`,
    group: labelOfGroup(params),
  };
}

function textOfCohort(params: URLSearchParams, calendar: Calendar): string {
  const [interval, cohort, period] = [
    params.get('interval') ?? 'day',
    params.get('cohort') ?? '',
    params.get('period'),
  ];
  const isTime = !Number.isNaN(Date.parse(cohort));
  const cohortText = `of the cohort of ${isTime ? formatBucket(cohort, interval, zoneOf(params, calendar)) : cohort}`;
  if (period === null) return cohortText;
  if (period === '0') return `${cohortText} who came back in the same ${interval}`;
  return `${cohortText} who came back ${period} ${interval}${period === '1' ? '' : 's'} later`;
}
