import { expect, test } from 'vitest';
import { hrefOfView, parametersOf } from './view-address.ts';

const CALENDAR = { timeZone: 'Europe/Berlin', weekStart: 'sunday' } as const;

test('a view opens the page that it was saved from', () => {
  const params = new URLSearchParams('view=v&report=funnel&steps=a%2Cb&range=7d&step2.properties.plan=pro');
  const parameters = parametersOf(params, CALENDAR);
  expect(parameters).toEqual({ steps: 'a,b', range: '7d', 'step2.properties.plan': 'pro', ...CALENDAR });
  const [path, query] = hrefOfView({ id: 'v', report: 'funnel', parameters }).split('?');
  expect(path).toBe('#/explore');
  expect(Object.fromEntries(new URLSearchParams(query))).toEqual({ ...parameters, view: 'v', report: 'funnel' });
});

test('a chart is the page without a name, and its time zone counts', () => {
  expect(hrefOfView({ id: 'v', report: 'series', parameters: {} })).toBe('#/explore?view=v');
  expect(parametersOf(new URLSearchParams('timeZone=UTC'), CALENDAR)).toEqual({ ...CALENDAR, timeZone: 'UTC' });
});
