import { WEBHOOKS_ACCOUNT } from '@sluice/shared/clickhouse/testing/test-accounts';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { SEGMENT_CONDITIONS_MAX } from '../../http/limits.ts';
import { type QueryService, startQuery } from '../../testing/query-service.ts';
import { send } from '../../testing/views.ts';

let query: QueryService;

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'), WEBHOOKS_ACCOUNT);
});
afterAll(() => query.stop());

test('the largest segments, named as often as a request may, are answered beside all other filters', async () => {
  const conditions = SEGMENT_CONDITIONS_MAX / 2;
  const filters = Object.fromEntries(
    Array.from({ length: conditions }, (_, index) => [`properties.a.b${index}[ne]`, 'x']),
  );
  const behaviour = Array.from({ length: conditions }, (_, index) => ({
    did: `e${index}`,
    times: index % 3,
    days: 30,
  }));
  await send(query, 'PUT', '/segments/large', { of: 'users', filters, behaviour }, 'admin-c');
  const others = Array.from({ length: 20 }, (_, index) => `user.properties.a.b${index}[ne]=x`).join('&');
  const asked = await query.get(
    `/events?limit=10&segment[in]=large,large,large,large&segment[ne]=large&${others}`,
    'c',
  );
  expect(asked.status, asked.text).toBe(200);
  const refused = await query.get('/events?segment[in]=large,large,large,large,large,large', 'c');
  expect([refused.status, refused.body.errors.map(({ path }) => path)]).toEqual([400, ['segment']]);
});
