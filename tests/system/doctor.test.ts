import { eventually } from '@sluice/shared/testing/eventually';
import { expect, test } from 'vitest';
import { diagnose } from '../kit/doctor.ts';
import { takeTenant } from '../kit/shared-pipeline.ts';

test('services that run are ready, and serve an event that they accepted; its user is deleted', async () => {
  const { key, services, get } = await takeTenant('doctor');
  const env = {
    INGEST_URL: services['ingest-api'].url,
    QUERY_URL: services['query-api'].url,
    WRITER_URL: services.writer.url,
    SLUICE_API_KEY: key,
  };
  const { results, text } = await diagnose([], env);
  expect(results.map(({ name, state }) => [name, state])).toEqual([
    ['ingest-api.ready', 'ok'],
    ['query-api.ready', 'ok'],
    ['writer.ready', 'ok'],
    ['delivery', 'ok'],
  ]);
  expect(text).not.toContain(key);
  await eventually(async () => (await get('/events?limit=1')).body).toMatchObject({ results: [] });
  const { results: refused } = await diagnose([], { ...env, SLUICE_API_KEY: 'sk_unknown' });
  expect(refused.at(-1)).toMatchObject({ name: 'delivery', state: 'note', found: expect.stringContaining('401') });
});
