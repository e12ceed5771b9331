import { readFile, writeFile } from 'node:fs/promises';
import { hashKey, type KeyEntry, parseKeysFile, readKeysFile, writeKeysFile } from '@sluice/shared/keys/keys-file';
import { createDocumentChecker } from '@sluice/shared/testing/openapi';
import { until } from '@sluice/shared/testing/until';
import { beforeEach, describe, expect, inject, onTestFinished, test } from 'vitest';
import { KEYS_PER_WORKSPACE_MAX } from '../../http/limits.ts';
import { type QueryService, startQuery } from '../../testing/query-service.ts';
import { KEY_BODY_BYTES_MAX } from './keys-route.ts';
import { WorkspaceKeys } from './workspace-keys.ts';

let query: QueryService;
let file: string;

async function start(env: Readonly<Record<string, string>> = {}): Promise<void> {
  query = await startQuery(inject('clickhouseUrl'), { API_KEYS_CHANGEABLE: 'true', ...env });
  const { stop } = query;
  onTestFinished(stop);
  file = query.config.API_KEYS_FILE ?? '';
}

interface Answer {
  readonly status: number;
  readonly body: {
    readonly id: string;
    readonly key: string;
    readonly keys: readonly { readonly id: string }[];
    readonly code: string;
    readonly detail: string;
    readonly errors: readonly { readonly path: string; readonly message: string }[];
    readonly scopes: readonly string[];
    readonly rateLimit: number | null;
  };
}

async function send(
  method: 'GET' | 'POST' | 'DELETE',
  url: string,
  key = 'admin-a',
  payload?: unknown,
): Promise<Answer> {
  const response = await query.app.inject({
    ...{ method, url, headers: { authorization: `Bearer ${key}` } },
    ...(payload !== undefined && { payload: payload as object }),
  });
  return { status: response.statusCode, body: JSON.parse(response.body || 'null') };
}

/** Adds keys to the file; the key with the id `x` is `x` itself. */
async function addKeys(...added: readonly (Partial<KeyEntry> & Pick<KeyEntry, 'id'>)[]): Promise<void> {
  const entries = added.map((entry) => ({
    ...{ hash: hashKey(entry.id), workspace: 'a', scopes: ['query' as const] },
    ...entry,
  }));
  await writeKeysFile(file, [...(await readKeysFile(file)), ...entries]);
  await until('the keys to be known', async () => {
    const answers = await Promise.all(added.map(({ id }) => send('GET', '/keys', id)));
    return answers.every(({ status }) => status !== 401);
  });
}

describe('with a file that may be changed', () => {
  beforeEach(() => start());

  test('a key is created, shown once, used, revoked and refused', async () => {
    const created = await send('POST', '/keys', 'admin-a', { scopes: ['query'], name: 'the till 🦊' });
    const shown = { name: 'the till 🦊', scopes: ['query'], current: false };
    expect(created).toMatchObject({ status: 201, body: { ...shown, rateLimit: null } });
    const { key, id } = created.body;
    const events = () => query.app.inject({ url: '/events', headers: { authorization: `Bearer ${key}` } });
    await until('the key to be accepted', async () => (await events()).statusCode === 200);

    const listed = await send('GET', '/keys');
    expect(listed.body.keys).toContainEqual(expect.objectContaining({ id, ...shown }));
    expect(listed.body.keys).toContainEqual(expect.objectContaining({ id: 'admin-a', name: null, current: true }));
    const text = JSON.stringify(listed.body);
    for (const { hash } of await readKeysFile(file)) expect(text).not.toContain(hash);
    expect(text).not.toContain(key);
    expect(await readFile(file, 'utf8')).not.toContain(key);

    expect(await send('DELETE', `/keys/${id}`)).toMatchObject({ status: 204 });
    await until('the key to be refused', async () => (await events()).statusCode === 401);
    expect(await send('DELETE', `/keys/${id}`)).toMatchObject({ status: 404, body: { code: 'not_found' } });
  });

  test('the responses are as documented', async () => {
    const checker = createDocumentChecker((await query.app.inject('/openapi.json')).json());
    const headers = { authorization: 'Bearer admin-a' };
    const list = await query.app.inject({ url: '/keys', headers });
    expect(checker.errorsOfResponse('GET /keys', list)).toBeUndefined();
    const payload = { scopes: ['admin', 'query', 'query'], rateLimit: 5 };
    const created = await query.app.inject({ method: 'POST', url: '/keys', headers, payload });
    expect(checker.errorsOfResponse('POST /keys', created)).toBeUndefined();
    expect(created.json()).toMatchObject({ scopes: ['query', 'admin'], rateLimit: 5 });
  });

  test('a workspace sees and revokes its own keys alone, also where another one has the same id', async () => {
    await addKeys({ id: 'twin' }, { id: 'other', workspace: 'b' });
    const entries = await readKeysFile(file);
    await writeKeysFile(file, [...entries, { id: 'twin', hash: hashKey('of b'), workspace: 'b', scopes: ['query'] }]);
    const { body } = await send('GET', '/keys');
    const own = (await readKeysFile(file)).filter(({ workspace }) => workspace === 'a').map(({ id }) => id);
    expect(body.keys.map(({ id }) => id)).toEqual(own);
    expect(await send('DELETE', '/keys/other')).toMatchObject({ status: 404 });
    expect(await send('DELETE', '/keys/twin')).toMatchObject({ status: 204 });
    const left = (await readKeysFile(file)).filter(({ id }) => id === 'twin' || id === 'other');
    expect(left.map(({ id, workspace }) => `${id} ${workspace}`).toSorted()).toEqual(['other b', 'twin b']);
  });

  test.each([
    ['GET', '/keys'],
    ['POST', '/keys'],
    ['DELETE', '/keys/a'],
  ] as const)('%s %s needs the scope admin', async (method, url) => {
    for (const key of ['a', 'sql-a', 'webhooks-a', 'ingest-only']) {
      expect(await send(method, url, key)).toMatchObject({ status: 403, body: { code: 'missing_scope' } });
    }
    expect(await query.app.inject({ method, url })).toMatchObject({ statusCode: 401 });
  });

  test('a key gives no scope that it lacks; all of them are named, and nothing is written', async () => {
    const before = await readFile(file, 'utf8');
    const scopes = ['query', 'delete', 'sql', 'admin'];
    const refused = await send('POST', '/keys', 'admin-a', { scopes });
    expect(refused).toMatchObject({ status: 403, body: { code: 'missing_scope' } });
    expect(refused.body.detail).toContain('"delete" and "sql"');
    expect(await readFile(file, 'utf8')).toBe(before);
  });

  test('a key gives no higher rate limit than its own, which is the default', async () => {
    await addKeys({ id: 'slow', scopes: ['query', 'admin'], rateLimit: 500 });
    const higher = await send('POST', '/keys', 'slow', { scopes: ['query'], rateLimit: 501 });
    expect(higher).toMatchObject({ status: 400, body: { errors: [{ path: 'rateLimit' }] } });
    expect((await send('POST', '/keys', 'slow', { scopes: ['query'] })).body.rateLimit).toBe(500);
    expect((await send('POST', '/keys', 'slow', { scopes: ['query'], rateLimit: 3 })).body.rateLimit).toBe(3);
  });

  test('a key does not revoke itself, so that one that may undo it remains', async () => {
    const answer = await send('DELETE', '/keys/admin-a');
    expect(answer).toMatchObject({ status: 400, body: { errors: [{ path: 'id' }] } });
    expect((await readKeysFile(file)).map(({ id }) => id)).toContain('admin-a');
  });

  test('of two keys that revoke each other at once, one remains', async () => {
    await addKeys({ id: 'rival', scopes: ['query', 'admin'] });
    const answers = await Promise.all([send('DELETE', '/keys/rival'), send('DELETE', '/keys/admin-a', 'rival')]);
    expect(answers.map(({ status }) => status).toSorted()).toEqual([204, 401]);
    const left = (await readKeysFile(file)).filter(({ id }) => id === 'rival' || id === 'admin-a');
    expect(left).toHaveLength(1);
  });

  test('a key that was revoked, or lost the scope, a moment ago creates no other key', async () => {
    await addKeys({ id: 'leaked', scopes: ['query', 'admin'] }, { id: 'lowered', scopes: ['query', 'admin'] });
    const left = (await readKeysFile(file))
      .filter(({ id }) => id !== 'leaked')
      .map((entry) => (entry.id === 'lowered' ? { ...entry, scopes: ['query' as const] } : entry));
    await writeKeysFile(file, left);
    // Whether or not the service has read the file by now.
    expect(await send('POST', '/keys', 'leaked', { scopes: ['query'] })).toMatchObject({ status: 401 });
    expect(await send('POST', '/keys', 'lowered', { scopes: ['query'] })).toMatchObject({ status: 403 });
    expect(await send('DELETE', '/keys/a', 'lowered')).toMatchObject({ status: 403 });
    expect(await readKeysFile(file)).toEqual(left);
  });

  test.each([
    [{}, ['scopes']],
    [{ scopes: [] }, ['scopes']],
    [{ scopes: ['query'], workspace: 'b', hash: 'x', id: 'y' }, ['workspace', 'hash', 'id']],
    [{ scopes: ['root', 'query', '__proto__'], rateLimit: 0 }, ['scopes.0', 'scopes.2', 'rateLimit']],
    [{ scopes: 'query', rateLimit: 1.5 }, ['scopes', 'rateLimit']],
    [{ scopes: ['query'], rateLimit: '5' }, ['rateLimit']],
    [[], ['']],
  ])('the faults of %j are all named, and nothing is written', async (body, paths) => {
    const before = await readFile(file, 'utf8');
    const answer = await send('POST', '/keys', 'admin-a', body);
    expect([answer.status, answer.body.errors.map(({ path }) => path)]).toEqual([400, paths]);
    expect(await readFile(file, 'utf8')).toBe(before);
  });

  test.each(['..%2F..%2Fkeys.json', '%00', '%5C', 'a%20or%201=1', 'a'.repeat(2_000)])(
    'DELETE /keys/%s revokes nothing',
    async (id) => {
      const before = await readFile(file, 'utf8');
      expect((await send('DELETE', `/keys/${id}`)).status).toBe(404);
      expect(await readFile(file, 'utf8')).toBe(before);
    },
  );

  test('a workspace gets no more keys than it may have, also at once, and another one still gets its own', async () => {
    const own = (await readKeysFile(file)).filter(({ workspace }) => workspace === 'a').length;
    const filling = Array.from({ length: KEYS_PER_WORKSPACE_MAX - own - 1 }, (_, index) => ({
      ...{ id: `fill-${index}`, hash: hashKey(`fill-${index}`), workspace: 'a', scopes: ['query' as const] },
    }));
    await writeKeysFile(file, [...(await readKeysFile(file)), ...filling]);
    const create = () => send('POST', '/keys', 'admin-a', { scopes: ['query'] });
    const answers = await Promise.all([create(), create(), create()]);
    expect(answers.map(({ status }) => status).toSorted()).toEqual([201, 400, 400]);
    expect((await send('POST', '/keys', 'admin-b', { scopes: ['query'] })).status).toBe(201);
  });

  test('a body that is too large, or of another type, is refused', async () => {
    const sent = (payload: string, type: string) =>
      query.app.inject({
        ...{ method: 'POST', url: '/keys', payload },
        headers: { authorization: 'Bearer admin-a', 'content-type': type },
      });
    const body = JSON.stringify({ scopes: ['query'] });
    expect((await sent(body.padEnd(KEY_BODY_BYTES_MAX), 'application/json')).statusCode).toBe(201);
    expect((await sent(body.padEnd(KEY_BODY_BYTES_MAX + 1), 'application/json')).statusCode).toBe(413);
    // What a form of another site could send.
    expect((await sent(body, 'text/plain')).statusCode).toBe(415);
  });

  test('a file that is not valid is neither shown nor replaced', async () => {
    await writeFile(file, '{"keys": [');
    for (const answer of [await send('GET', '/keys'), await send('POST', '/keys', 'admin-a', { scopes: ['query'] })]) {
      expect(answer).toMatchObject({ status: 503, body: { code: 'keys_unavailable' } });
      expect(JSON.stringify(answer.body)).not.toContain(file);
    }
    expect(await readFile(file, 'utf8')).toBe('{"keys": [');
  });

  test('the file stays as commands know it', async () => {
    await send('POST', '/keys', 'admin-a', { scopes: ['query'], rateLimit: 7 });
    const added = parseKeysFile(await readFile(file, 'utf8')).at(-1);
    expect(added).toEqual({
      ...{ id: expect.stringMatching(/^[0-9a-f]{12}$/), hash: expect.stringMatching(/^[0-9a-f]{64}$/) },
      ...{ workspace: 'a', scopes: ['query'], createdAt: expect.any(String), rateLimit: 7 },
    });
  });
});

test('where the file may not be changed, keys are listed, and each change gets 501', async () => {
  await start({ API_KEYS_CHANGEABLE: 'false' });
  const before = await readFile(file, 'utf8');
  expect((await send('GET', '/keys')).status).toBe(200);
  const answers = [await send('POST', '/keys', 'admin-a', { scopes: ['query'] }), await send('DELETE', '/keys/a')];
  for (const answer of answers) {
    expect(answer).toMatchObject({ status: 501, body: { code: 'keys_read_only' } });
    expect(answer.body.detail).toContain('sluice keys');
  }
  expect(await readFile(file, 'utf8')).toBe(before);
});

test('a file in a folder that cannot be written gets 501', async () => {
  // Nobody can create files there, the administrator of a container neither.
  const keys = new WorkspaceKeys({ path: '/dev/pts/keys.json', isChangeable: true, rateLimitDefault: undefined });
  const created = keys.create({ hash: hashKey('a'), workspace: 'a' }, { scopes: ['query'] });
  await expect(created).rejects.toMatchObject({ code: 'keys_read_only', status: 501 });
});

test('a key without a limit of its own gives none above that of the service', async () => {
  await start({ RATE_LIMIT_DEFAULT: '100' });
  const higher = await send('POST', '/keys', 'admin-a', { scopes: ['query'], rateLimit: 101 });
  expect(higher).toMatchObject({ status: 400, body: { errors: [{ path: 'rateLimit' }] } });
  expect((await send('POST', '/keys', 'admin-a', { scopes: ['query'] })).body.rateLimit).toBeNull();
});
