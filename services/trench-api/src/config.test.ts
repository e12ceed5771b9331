import { loadConfig } from '@sluice/shared/config';
import { expect, test } from 'vitest';
import { configSchema } from './config.ts';

const ENV = { INGEST_URL: 'http://ingest:8080', QUERY_URL: 'http://query:8080' };

test('the two services are all that is needed, and the admin key needs the file that it changes', () => {
  expect(loadConfig(configSchema, ENV)).toMatchObject({ ...ENV, PORT: 4003 });
  expect(() => loadConfig(configSchema, {})).toThrow(/INGEST_URL: is required.*QUERY_URL: is required/s);
  expect(() => loadConfig(configSchema, { ...ENV, TRENCH_ADMIN_KEY: 'a' })).toThrow('API_KEYS_FILE: is needed');
  expect(() => loadConfig(configSchema, { ...ENV, QUERY_URL: 'query:8080' })).toThrow('QUERY_URL: must be');
});
