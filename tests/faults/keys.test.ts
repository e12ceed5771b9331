import { rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { findFreePorts } from '@sluice/local-stack/ports';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { MIGRATE_ACCOUNT, QUERY_ACCOUNT } from '@sluice/shared/clickhouse/testing/test-accounts';
import { hashKey, writeKeysFile } from '@sluice/shared/keys/keys-file';
import { eventually } from '@sluice/shared/testing/eventually';
import { expect, inject, onTestFinished, test } from 'vitest';
import { type ServiceName, startService } from '../kit/service.ts';

const key = { id: 'k', hash: hashKey('known'), workspace: 'test', scopes: ['ingest' as const, 'query' as const] };

/** A request to each service that a known key may send, and the status of its success. */
const REQUESTS = {
  'ingest-api': { path: '/v1/public/users', body: '{"foreignId":"jane"}', status: 202 },
  'query-api': { path: '/events', body: undefined, status: 200 },
} as const;

/** Starts a service with this keys file, which may be missing. */
async function start(name: keyof typeof REQUESTS, keysFile: string, env: Readonly<Record<string, string>> = {}) {
  const [port = 0] = await findFreePorts(1);
  const service = startService(name as ServiceName, port, {
    KAFKA_BROKERS: inject('kafkaBrokers').join(','),
    KAFKA_TOPIC_PREFIX: `keys-${port}.`,
    CLICKHOUSE_URL: inject('clickhouseUrl'),
    CLICKHOUSE_DATABASE: `test_keys_${port}`,
    ...QUERY_ACCOUNT,
    ...MIGRATE_ACCOUNT,
    API_KEYS_FILE: keysFile,
    ...env,
  });
  onTestFinished(() => service.kill9());
  const { path, body } = REQUESTS[name];
  return {
    service,
    /** What `/readyz` names as missing: nothing when it is ready; undefined while the service does not listen. */
    async missing(): Promise<readonly string[] | undefined> {
      const response = await fetch(`${service.url}/readyz`).catch(() => undefined);
      if (!response) return undefined;
      const { missing = [] } = (await response.json()) as { missing?: string[] };
      return missing;
    },
    async request(bearer?: string): Promise<{ status: number; code: string; retryAfter: string | null }> {
      const response = await fetch(`${service.url}${path}`, {
        method: body === undefined ? 'GET' : 'POST',
        headers: { 'content-type': 'application/json', ...(bearer && { authorization: `Bearer ${bearer}` }) },
        body: body ?? null,
      });
      const { code = '' } = (await response.json()) as { code?: string };
      return { status: response.status, code, retryAfter: response.headers.get('retry-after') };
    },
  };
}

test.each([
  ['ingest-api', 'missing'],
  ['ingest-api', 'broken'],
  ['query-api', 'missing'],
  ['query-api', 'broken'],
] as const)(
  '%s started with a keys file that is %s refuses no key until it has read a good one',
  async (name, fault) => {
    const folder = await makeTempDir();
    onTestFinished(() => folder[Symbol.asyncDispose]());
    const keysFile = join(folder.path, 'keys.json');
    if (fault === 'broken') await writeFile(keysFile, '{"keys": [');
    const { service, missing, request } = await start(name, keysFile);

    await eventually(missing).toEqual(['the keys file cannot be used']);
    const refused = await request('known');
    expect([refused.status, refused.code]).toEqual([503, 'keys_unavailable']);
    expect(refused.retryAfter).toMatch(/^\d+$/);
    expect((await request()).status).toBe(401);

    // Valid, though it holds no keys: now an unknown key is known to be wrong.
    await writeKeysFile(keysFile, []);
    await eventually(missing).toEqual([]);
    expect((await request('known')).status).toBe(401);

    await writeKeysFile(keysFile, [key]);
    await eventually(async () => (await request('known')).status).toBe(REQUESTS[name].status);
    const replaceFile = async () => {
      // In one step: a file that is read while it is written is wrong in another way.
      await writeFile(`${keysFile}.new`, 'no json');
      await rename(`${keysFile}.new`, keysFile);
    };
    for (const breakFile of [replaceFile, () => rm(keysFile)]) {
      const faults = () => service.log().split('the last valid keys stay').length;
      const before = faults();
      await breakFile();
      await eventually(faults).toBe(before + 1);
      expect((await request('known')).status).toBe(REQUESTS[name].status);
      expect((await request('wrong')).status).toBe(401);
      expect(await missing()).toEqual([]);
    }
  },
);

test('query-api without a keys file is ready when a workspace may be read without a key', async () => {
  const { missing, request } = await start('query-api', '', { QUERY_ANONYMOUS_WORKSPACE: 'local' });
  await eventually(missing).toEqual([]);
  expect((await request()).status).toBe(200);
  expect((await request('any')).status).toBe(401);
});
