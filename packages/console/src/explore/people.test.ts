import { expect, test } from 'vitest';
import { peopleHref, peopleReportOf, reportOfPeople, titleOf } from './people.ts';

const CALENDAR = { timeZone: 'Europe/Berlin', weekStart: 'sunday' } as const;

const DATES = { startDate: '2026-02-01T00:00:00.000Z', endDate: '2026-02-28T23:59:59.999Z' };

/** The parameters of the address of people. */
function parametersOf(href: string | undefined): Record<string, string> {
  const [path, query] = (href ?? '').split('?');
  expect(path).toBe('#/people');
  return Object.fromEntries(new URLSearchParams(query));
}

test('the address of a step has the parameters of the API, the dates of the report, and no group', () => {
  const params = new URLSearchParams(
    'report=funnel&view=v&steps=a,b%5C,c&step2.properties.x%5Bgte%5D=1&by=organization&range=7d&groupBy=type&timeZone=UTC',
  );
  expect(parametersOf(peopleHref('funnel', params, CALENDAR, { ...DATES, step: '2', dropped: 'true' }))).toEqual({
    ...{ report: 'funnel', steps: 'a,b\\,c', 'step2.properties.x[gte]': '1', by: 'organization' },
    ...{ ...DATES, step: '2', dropped: 'true' },
  });
});

test('the address of a group has its key, unless that is too long', () => {
  const params = new URLSearchParams('report=funnel&steps=a,b&groupBy=properties.plan');
  const number = { ...DATES, step: '1' };
  expect(parametersOf(peopleHref('funnel', params, CALENDAR, { ...number, group: '"pro"' }))).toEqual({
    ...{ report: 'funnel', steps: 'a,b', groupBy: 'properties.plan', group: '"pro"' },
    ...number,
  });
  expect(peopleHref('funnel', params, CALENDAR, { ...number, group: 'x'.repeat(2_001) })).toBeUndefined();
});

test('the address of a cohort does not depend on the settings', () => {
  const params = new URLSearchParams('report=retention&event=a&range=30d');
  const number = { ...DATES, interval: 'week', timeZone: 'Asia/Kathmandu', cohort: DATES.startDate, period: '2' };
  const parameters = { report: 'retention', event: 'a', weekStart: 'sunday', ...number };
  const href = peopleHref('retention', params, CALENDAR, number);
  expect(parametersOf(href)).toEqual(parameters);
  const shown = new URLSearchParams(parametersOf(href));
  expect(Object.fromEntries(reportOfPeople('retention', shown))).toEqual({
    ...{ report: 'retention', event: 'a', weekStart: 'sunday', interval: 'week', timeZone: 'Asia/Kathmandu' },
    ...DATES,
  });
});

test('the address of a group of retention has its key, which the report has not', () => {
  const params = new URLSearchParams('report=retention&by=organization&groupBy=organization.properties.plan');
  const number = { ...DATES, cohort: DATES.startDate, group: 'null' };
  const shown = parametersOf(peopleHref('retention', params, CALENDAR, number));
  expect(shown).toMatchObject({ by: 'organization', groupBy: 'organization.properties.plan', group: 'null' });
  expect(reportOfPeople('retention', new URLSearchParams(shown)).has('group')).toBe(false);
});

test('without the page of a report there is no address', () => {
  expect(peopleHref('funnel', undefined, CALENDAR, { step: '1' })).toBeUndefined();
});

test('the report of an address is known, or its fault is said', () => {
  const reportOf = (query: string) => peopleReportOf(new URLSearchParams(query));
  expect([reportOf('report=funnel'), reportOf('report=retention')]).toEqual(['funnel', 'retention']);
  const fault = 'report must be one of funnel, retention.';
  for (const query of ['', 'report=series', 'report=toString', 'report=']) expect(reportOf(query)).toEqual({ fault });
  expect(reportOf('report=funnel&report=funnel')).toEqual({ fault: 'report is given more than once.' });
});

test.each([
  [
    'funnel',
    'steps=a,b%5C,c&step=2',
    { path: 'users', times: ['Step 1', 'Step 2'], text: 'Users who got to step 2', event: 'b,c' },
  ],
  [
    'funnel',
    'steps=a,b&step=2&dropped=true&by=organization&group=null',
    {
      path: 'organizations',
      times: ['Step 1'],
      text: 'Organizations who dropped out before step 2',
      event: 'b',
      group: '(none)',
    },
  ],
  [
    'funnel',
    'steps=a&step=9&group=%7B',
    { path: 'users', times: ['Step 1', 'Step 9'], text: 'Users who got to step 9', group: '{' },
  ],
  ['funnel', 'group=1.50', { path: 'users', times: ['Step 1'], text: 'Users who got to step ', group: '1.50' }],
  [
    'retention',
    'cohort=2026-02-01T00:00:00.000Z&interval=month&timeZone=UTC',
    { path: 'users', times: ['First event'], text: expect.stringMatching(/^Users of the cohort of .*2026$/) },
  ],
  [
    'retention',
    'by=organization&cohort=never&period=0&group=%22pro%22',
    {
      path: 'organizations',
      times: ['First event'],
      text: 'Organizations of the cohort of never who came back in the same day',
      group: 'pro',
    },
  ],
  [
    'retention',
    'cohort=2026-02-01T00:00:00.000Z&period=1&timeZone=Nowhere',
    { path: 'users', times: ['First event'], text: expect.stringMatching(/ who came back 1 day later$/) },
  ],
  [
    'retention',
    'cohort=never&period=2&interval=week',
    { path: 'users', times: ['First event'], text: 'Users of the cohort of never who came back 2 weeks later' },
  ],
] as const)('the title of %s %s', (report, query, title) => {
  expect(titleOf(report, new URLSearchParams(query), CALENDAR)).toEqual(title);
});
