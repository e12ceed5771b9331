import { expect, test } from 'vitest';
import { linkOf, meansNobody } from './link-row.ts';

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
  expect(meansNobody(id)).toBe(true);
  expect(linkOf(id, 'jane')).toBeUndefined();
  expect(linkOf('a7f3', id)).toBeUndefined();
});

test.each(['jane', '1', '00a', 'anonymous-7', 'null@example.com', '00000000-0000-4000-8000-000000000000', 'нуль'])(
  '"%s" is somebody',
  (id) => {
    expect(meansNobody(id)).toBe(false);
    expect(linkOf('a7f3', id)).toEqual({ anonymousId: 'a7f3', userId: id });
  },
);
