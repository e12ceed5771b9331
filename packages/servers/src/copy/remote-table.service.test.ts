import { createClickHouse } from '@sluice/shared/clickhouse/client';
import { ADMINISTRATOR } from '@sluice/shared/clickhouse/testing/test-accounts';
import fc, { sample } from '@sluice/shared/testing/fast-check';
import { expect, inject, test } from 'vitest';
import type { ConfiguredServer } from '../state/connected-server.ts';
import { literal, remoteTables } from './remote-table.ts';

/** A server of the file with this login. */
function serverWith(config: object, server: object = {}): ConfiguredServer {
  return {
    server: { name: 'a1', native: 'ch-a1:9000', nativeTls: false, database: 'sluice', ...server },
    config: { CLICKHOUSE_URL: 'http://ch-a1:8123', CLICKHOUSE_USER: 'writer', CLICKHOUSE_PASSWORD: 'w', ...config },
  } as unknown as ConfiguredServer;
}

const MIGRATE = { CLICKHOUSE_MIGRATE_USER: 'migrate', CLICKHOUSE_MIGRATE_PASSWORD: `it's "a\\b'` };

test('ClickHouse reads every text back from its literal', async () => {
  await using client = createClickHouse(
    { CLICKHOUSE_URL: inject('clickhouseUrl'), CLICKHOUSE_DATABASE: 'default', ...ADMINISTRATOR },
    { application: 'test', requestTimeoutMs: 240_000, connectionsMax: 1 },
  );
  const texts = [
    ...sample(fc.string({ unit: 'grapheme' }), 200),
    ...sample(fc.string({ unit: fc.constantFrom(...`'"\\\`nt0xN{}:;-/*‘’“”\n\t ü😀`) }), 200),
    ...["'", '\\', "\\'", "'; DROP TABLE events; --", '{p:String}', '\n', '\u0000', "\\\\'", '$tag$', 'x\\'],
  ];
  const query = `SELECT hex(arrayJoin([${texts.map(literal).join(', ')}])) AS hex`;
  const result = await client.query({ query, format: 'JSONEachRow' });
  const read = (await result.json<{ hex: string }>()).map(({ hex }) => Buffer.from(hex, 'hex').toString());
  expect(read).toEqual(texts.map((text) => Buffer.from(text).toString()));
});

test('a table of another server is read with the account for migrations, over TLS where the file says so', () => {
  const password = String.raw`'it\'s "a\\b\''`;
  expect(remoteTables(serverWith(MIGRATE))('events')).toBe(
    `remote('ch-a1:9000', 'sluice', 'events', 'migrate', ${password})`,
  );
  expect(remoteTables(serverWith(MIGRATE, { nativeTls: true }), 'inner:9440')('events')).toBe(
    `remoteSecure('inner:9440', 'sluice', 'events', 'migrate', ${password})`,
  );
  // Without such an account, with the login of the address, or else that of the environment.
  const url = 'http://user:se%27cret@ch-a1:8123';
  expect(remoteTables(serverWith({ CLICKHOUSE_URL: url }))('t')).toContain(String.raw`'user', 'se\'cret')`);
  expect(remoteTables(serverWith({}))('t')).toContain("'writer', 'w')");
});

test('a login that the native protocol does not take is refused, and not shown', () => {
  const refusal = (config: object) => {
    try {
      return remoteTables(serverWith(config))('t');
    } catch (error) {
      return String(error);
    }
  };
  for (const character of ['\n', '\u0000', '\u007f', '\t']) {
    const message = refusal({ CLICKHOUSE_PASSWORD: `secret${character}` });
    expect(message).toMatch(/^Refused: .*no control characters/);
    expect(message).not.toContain('secret');
  }
  expect(refusal({ CLICKHOUSE_CERT_FILE: '/cert.pem' })).toMatch(/^Refused: .*client certificate/);
});
