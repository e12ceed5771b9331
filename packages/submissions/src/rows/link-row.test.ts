import { expect, test } from 'vitest';
import { NOBODY, Nobody, nobodyOf } from '../reading/nobody.ts';
import { linkOf, namesNobody } from './link-row.ts';

const nobody = new Nobody(NOBODY);
const link = (anonymousId: string, userId: string) => ({ anonymousId, userId });

test.each([
  ...[
    '',
    '  ',
    '0',
    '000',
    '00000000-0000-0000-0000-000000000000',
    'null',
    'NULL',
    ' undefined ',
    'Anonymous',
    'guest',
  ],
  ...['[object Object]', 'NaN', 'true', 'not_authenticated', 'distinct_id', '-1'],
  // It would say that jane became somebody else.
  '\uffffjane',
])('"%s" means nobody', (id) => {
  expect([link(id, 'jane'), link('a7f3', id)].map((one) => namesNobody(one, nobody))).toEqual([true, true]);
});

test.each(['jane', '1', '00a', 'anonymous-7', 'null@example.com', '00000000-0000-4000-8000-000000000000', 'нуль'])(
  '"%s" is somebody',
  (id) => {
    expect(namesNobody(link('a7f3', id), nobody)).toBe(false);
  },
);

test('only what names both makes a link', () => {
  expect(linkOf('a7f3', 'jane')).toEqual({ anonymousId: 'a7f3', userId: 'jane' });
  expect([linkOf(undefined, 'jane'), linkOf('a7f3', undefined)]).toEqual([undefined, undefined]);
});

test('an operator adds names of nobody, or says all of them', () => {
  const means = (config: Parameters<typeof nobodyOf>[0]) =>
    ['Kiosk', ' GUEST ', '0', '', 'jane'].filter((id) => nobodyOf(config).isNamedBy(id));
  expect(means({ NOBODY_IDS: NOBODY, NOBODY_IDS_ADDED: ['kiosk'] })).toEqual(['Kiosk', ' GUEST ', '0', '']);
  expect(means({ NOBODY_IDS: ['KIOSK'], NOBODY_IDS_ADDED: [] })).toEqual(['Kiosk', '0', '']);
  expect(means({ NOBODY_IDS: [], NOBODY_IDS_ADDED: [] })).toEqual(['0', '']);
});
