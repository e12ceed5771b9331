import { loadConfig } from '@sluice/shared/config';
import { expect, test } from 'vitest';
import { configSchema, proxyNetwork } from './config.ts';
import { workerEnvironment } from './workers/primary.ts';

const ENV = { KAFKA_BROKERS: 'a:1', API_KEYS_FILE: 'keys.json', BODY_BYTES_MAX: '1000000' };

test('the memory must be enough for each worker, and the error says how much that is', () => {
  const load = (env: Readonly<Record<string, string>>) => loadConfig(configSchema, { ...ENV, ...env });
  expect(load({ PENDING_BYTES_MAX: '12000000' }).PENDING_BYTES_MAX).toBe(12_000_000);
  expect(() => load({ PENDING_BYTES_MAX: '11999999' })).toThrow(
    'PENDING_BYTES_MAX: must be at least 12000000: 12 times',
  );
  expect(() => load({ PENDING_BYTES_MAX: '23999999', INGEST_WORKERS: '2' })).toThrow(
    'PENDING_BYTES_MAX: must be at least 24000000: 12 times BODY_BYTES_MAX for each of the 2 INGEST_WORKERS',
  );
});

test('what the primary process accepts, its workers accept', () => {
  for (const INGEST_WORKERS of ['2', '3', '7']) {
    const env = { ...ENV, INGEST_WORKERS, PENDING_BYTES_MAX: String(12_000_000 * Number(INGEST_WORKERS)) };
    const worker = loadConfig(configSchema, { ...env, ...workerEnvironment(loadConfig(configSchema, env)) });
    expect(worker).toMatchObject({ INGEST_WORKERS: 1, PENDING_BYTES_MAX: 12_000_000, EXIT_ON_STDIN_END: false });
  }
});

test('a default that does not do is not called missing', () => {
  const load = () => loadConfig(configSchema, { ...ENV, INGEST_WORKERS: '256', BODY_BYTES_MAX: '67108864' });
  expect(load).toThrow('PENDING_BYTES_MAX: must be at least');
});

test('names of nobody are a list of identifiers', () => {
  const load = (text: string) => loadConfig(configSchema, { ...ENV, NOBODY_IDS_ADDED: text });
  expect(load('kiosk, demo user').NOBODY_IDS_ADDED).toEqual(['kiosk', 'demo user']);
  expect(load('').NOBODY_IDS_ADDED).toEqual([]);
  expect(load('kiosk').NOBODY_IDS).toContain('anonymous');
  expect(() => load('kiosk,,demo')).toThrow('NOBODY_IDS_ADDED: must be a list separated by commas');
  expect(() => load('x'.repeat(513))).toThrow('must have at most 512 characters each');
  expect(() => load('x,'.repeat(1_000).concat('x'))).toThrow('must be at most 1000 identifiers');
});

test('proxies are addresses, networks, or ranges with a name', () => {
  const is = (text: string) => proxyNetwork.safeParse(text).success;
  for (const text of ['10.0.0.1', '10.0.0.0/8', '::1', 'fd00::/8', 'loopback', 'uniquelocal'])
    expect(is(text)).toBe(true);
  for (const text of ['', 'proxy', '10.0.0', '10.0.0.0/0', '10.0.0.0/33', 'fd00::/129', '10.0.0.0/8/8', '10.0.0.0/'])
    expect([text, is(text)]).toEqual([text, false]);
});
