import { expect, test } from 'vitest';
import { hrefOf, parseRoute } from './route.ts';

test.each(['jane', 'fastify/fastify', 'a b?c#d%', 'ünï'])('the address of the user %s leads to it', (id) => {
  const { path, params } = parseRoute(hrefOf(['users', id], new URLSearchParams({ q: '?&#' })));
  expect([path, params.get('q')]).toEqual([['users', id], '?&#']);
});

test('an address that is not encoded well is taken as it is', () => {
  expect(parseRoute('#/users/100%').path).toEqual(['users', '100%']);
});
