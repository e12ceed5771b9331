import { expect, test } from 'vitest';
import { planOf } from './ready-made.tsx';

const parametersOf = (...given: Parameters<typeof planOf>) =>
  planOf(...given).views.map(({ parameters }) => parameters);

test('ready-made dashboards are of the events that there are', () => {
  const events = ['page_viewed', 'Signed Up', 'a,b'];
  expect(parametersOf('growth', events, '')[1]).toMatchObject({ event: 'Signed Up' });
  expect(parametersOf('activation', events, '')[0]).toMatchObject({ steps: 'Signed Up,page_viewed' });
  // Without a name that says so, people begin with what is done most.
  expect(parametersOf('activation', ['a,b', 'c'], '')[0]).toMatchObject({ steps: 'a\\,b,c' });
  expect(parametersOf('retention', events, '')[2]).toMatchObject({ event: 'Signed Up', returnEvent: 'page_viewed' });
  for (const parameters of parametersOf('organization', ['c'], 'acme'))
    expect(parameters).toMatchObject({ groupId: 'acme' });
});

test('too few events are said', () => {
  expect(() => planOf('growth', [], '')).toThrow('no events yet');
  expect(() => planOf('retention', ['one'], '')).toThrow('a second one');
});
