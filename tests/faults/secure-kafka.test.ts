import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type { LocalKafka } from '@sluice/local-stack/kafka';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { connectionHint } from '@sluice/shared/base/connection-hints';
import { createLogger } from '@sluice/shared/base/log';
import { kafkaEnv, loadConfig } from '@sluice/shared/config';
import { createKafka, recentHint } from '@sluice/shared/kafka/client';
import { withAdmin } from '@sluice/shared/kafka/topics';
import { type Authority, createAuthority } from '@sluice/shared/tls/testing/certificates';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { diagnose } from '../kit/doctor.ts';
import { allMechanisms, clientAuthority, keystore, secureKafka, TOKENS } from '../kit/secure-kafka.ts';
import { startTcpProxy } from '../kit/tcp-proxy.ts';
import { TESTED_KAFKAS } from '../kit/tested-engines.ts';
import { startTokenServer, TOKEN_CLIENT, type TokenServer } from '../kit/token-server.ts';

const LOGIN = { user: 'sluice', password: 'secret-of-sluice' };

const cleanup = new AsyncDisposableStack();
let folder: string;
let authority: Authority;
let kafka: LocalKafka;
let tokenServer: TokenServer;

beforeAll(async () => {
  folder = cleanup.use(await makeTempDir()).path;
  authority = await createAuthority();
  const store = async (name: string, options?: Parameters<Authority['issue']>[0]) =>
    await keystore(folder, name, await authority.issue(options));
  const good = await store('good');
  const elsewhere = { type: 'dns', value: 'elsewhere' } as const;
  kafka = cleanup.use(
    await secureKafka(LOGIN, {
      LOGIN: { protocol: 'SASL_SSL', settings: { ...good, ...allMechanisms(LOGIN) } },
      PLAINLOGIN: {
        protocol: 'SASL_SSL',
        settings: { ...good, ...allMechanisms(LOGIN), 'sasl.enabled.mechanisms': 'PLAIN' },
      },
      TOKENS: { protocol: 'SASL_SSL', settings: { ...good, ...TOKENS } },
      OPENTOKENS: { protocol: 'SASL_PLAINTEXT', settings: TOKENS },
      MUTUAL: { protocol: 'SSL', settings: { ...good, ...(await clientAuthority(folder, 'mutual', authority.cert)) } },
      EXPIRED: { protocol: 'SSL', settings: await store('expired', { days: -1 }) },
      ELSEWHERE: { protocol: 'SSL', settings: await store('elsewhere', { host: elsewhere }) },
    }),
  );
  await write('ca.pem', authority.cert);
  tokenServer = cleanup.use(await startTokenServer());
});

afterAll(() => cleanup.disposeAsync());

async function write(name: string, text: string): Promise<string> {
  const file = join(folder, name);
  await writeFile(file, text);
  return file;
}

const configOf = (listener: string, env: Readonly<Record<string, string>>) =>
  loadConfig(z.object(kafkaEnv), {
    KAFKA_BROKERS: (kafka.listeners[listener] ?? kafka.brokers).join(','),
    ...env,
  });

/** Connects to a listener as the services do. Returns what the log says, once the connection is made or given up. */
async function connect(listener: string, env: Readonly<Record<string, string>>) {
  const log: string[] = [];
  const destination = new Writable({
    write(chunk: Buffer, _encoding, done) {
      log.push(chunk.toString());
      done();
    },
  });
  const client = createKafka(configOf(listener, env), 'test', createLogger('test', 'trace', destination));
  const error: unknown = await withAdmin(client, (admin) => admin.listTopics()).then(
    () => undefined,
    (thrown) => thrown,
  );
  // As the services explain their readiness.
  return { error, hint: connectionHint(error) ?? recentHint(client), log: log.join('') };
}

const tls = () => ({ KAFKA_SSL: 'true', KAFKA_SSL_CA_FILE: join(folder, 'ca.pem') });

const login = (mechanism: string) => ({
  KAFKA_SASL_MECHANISM: mechanism,
  KAFKA_SASL_USERNAME: LOGIN.user,
  KAFKA_SASL_PASSWORD: LOGIN.password,
});

test.each(['plain', 'scram-sha-256', 'scram-sha-512'])('a login by %s over TLS', async (mechanism) => {
  const { error, log } = await connect('LOGIN', { ...tls(), ...login(mechanism) });
  expect(error).toBeUndefined();
  expect(log).not.toContain(LOGIN.password);
});

test('doctor asks a broker for its release over TLS', async () => {
  const env = { KAFKA_BROKERS: (kafka.listeners['LOGIN'] ?? []).join(), ...tls(), ...login('plain') };
  const { results } = await diagnose(['ingest-api'], env);
  const { name } = TESTED_KAFKAS.newest;
  expect(results.find((check) => check.name === 'kafka.version')).toMatchObject({
    state: 'ok',
    found: expect.stringContaining(`${name}; `),
  });
});

test('a login with a password from a file', async () => {
  const { KAFKA_SASL_PASSWORD: password, ...rest } = login('scram-sha-512');
  const KAFKA_SASL_PASSWORD_FILE = await write('password', `${password}\n`);
  expect(await connect('LOGIN', { ...tls(), ...rest, KAFKA_SASL_PASSWORD_FILE })).toMatchObject({
    error: undefined,
  });
});

const byTokens = () => ({
  ...tls(),
  KAFKA_SASL_MECHANISM: 'oauthbearer',
  KAFKA_SASL_USERNAME: TOKEN_CLIENT.id,
  KAFKA_SASL_PASSWORD: TOKEN_CLIENT.secret,
  KAFKA_SASL_TOKEN_URL: tokenServer.url,
});

test('a login by a token, with the scope and the extensions that are set', async () => {
  tokenServer.answer = {};
  const [host = '', port = ''] = kafka.listeners['OPENTOKENS']?.[0]?.split(':') ?? [];
  let sent = '';
  await using proxy = await startTcpProxy({ host, port: Number(port) }, (client, upstream) => {
    client.on('data', (piece: Buffer) => {
      sent += piece.toString('latin1');
      upstream.write(piece);
    });
    upstream.pipe(client);
  });
  const { error, log } = await connect('OPENTOKENS', {
    ...{ ...byTokens(), KAFKA_SSL: '', KAFKA_SSL_CA_FILE: '' },
    ...{ KAFKA_BROKERS: `127.0.0.1:${proxy.port}` },
    ...{ KAFKA_SASL_SCOPE: 'kafka', KAFKA_SASL_EXTENSIONS: 'logicalCluster=lkc-1,pool=p=2' },
  });
  expect(error).toBeUndefined();
  expect(sent).toContain('n,,\u0001logicalCluster=lkc-1\u0001pool=p=2\u0001auth=Bearer ');
  expect(log).not.toContain(TOKEN_CLIENT.secret);
  expect(Object.fromEntries(tokenServer.requests.at(-1) ?? [])).toEqual({
    grant_type: 'client_credentials',
    scope: 'kafka',
  });
});

test('tokens that end while records are sent lose none: each connection logs in again before', async () => {
  tokenServer.answer = { seconds: 13 };
  const topic = 'tokens';
  const client = createKafka(configOf('TOKENS', byTokens()), 'test', createLogger('test', 'silent'));
  await withAdmin(client, (admin) => admin.createTopics({ waitForLeaders: true, topics: [{ topic }] }));
  const producer = client.producer({ allowAutoTopicCreation: false, retry: { retries: 0 } });
  await producer.connect();
  const before = tokenServer.requests.length;
  // kafkajs logs in again ten seconds before the end.
  for (let sent = 0; tokenServer.requests.length < before + 3; sent += 1) {
    await producer.send({ topic, acks: -1, messages: [{ value: String(sent) }] });
    await delay(50);
  }
  await producer.disconnect();
});

test('a login by a client certificate', async () => {
  const { cert, key } = await authority.issue({ name: 'client' });
  const files = { KAFKA_SSL_CERT_FILE: await write('c.pem', cert), KAFKA_SSL_KEY_FILE: await write('k.pem', key) };
  expect(await connect('MUTUAL', { ...tls(), ...files })).toMatchObject({ error: undefined });
});

test.each<[what: string, listener: string, env: () => Promise<Record<string, string>>, hint: RegExp]>([
  ['no authority', 'LOGIN', async () => ({ KAFKA_SSL: 'true', ...login('plain') }), /KAFKA_SSL_CA_FILE/],
  [
    'another authority',
    'LOGIN',
    async () => ({
      ...tls(),
      ...login('plain'),
      KAFKA_SSL_CA_FILE: await write('other-ca.pem', (await createAuthority('Test CA')).cert),
    }),
    /KAFKA_SSL_CA_FILE/,
  ],
  ['an expired certificate of the broker', 'EXPIRED', async () => tls(), /has expired/],
  ['a certificate for another host', 'ELSEWHERE', async () => tls(), /KAFKA_BROKERS/],
  ['no client certificate', 'MUTUAL', async () => tls(), /KAFKA_SSL_CERT_FILE/],
  [
    'a client certificate of another authority',
    'MUTUAL',
    async () => {
      const { cert, key } = await (await createAuthority('Another CA')).issue();
      return {
        ...tls(),
        KAFKA_SSL_CERT_FILE: await write('other-c.pem', cert),
        KAFKA_SSL_KEY_FILE: await write('other-k.pem', key),
      };
    },
    /KAFKA_SSL_CERT_FILE/,
  ],
  [
    'a wrong password by plain',
    'LOGIN',
    async () => ({ ...tls(), ...login('plain'), KAFKA_SASL_PASSWORD: 'another-secret-of-sluice' }),
    /KAFKA_SASL_PASSWORD/,
  ],
  [
    'a wrong password by scram-sha-256',
    'LOGIN',
    async () => ({ ...tls(), ...login('scram-sha-256'), KAFKA_SASL_PASSWORD: 'another-secret-of-sluice' }),
    /KAFKA_SASL_PASSWORD/,
  ],
  [
    'a mechanism that the broker does not offer',
    'PLAINLOGIN',
    async () => ({ ...tls(), ...login('scram-sha-512') }),
    /KAFKA_SASL_MECHANISM/,
  ],
  [
    'a wrong secret for tokens',
    'TOKENS',
    async () => ({ ...byTokens(), KAFKA_SASL_PASSWORD: 'another-secret-of-sluice' }),
    /the token server refuses the client; check KAFKA_SASL_USERNAME/,
  ],
  [
    'no token server',
    'TOKENS',
    async () => ({ ...byTokens(), KAFKA_SASL_TOKEN_URL: 'http://127.0.0.1:9/' }),
    /KAFKA_SASL_TOKEN_URL/,
  ],
  [
    'a page in place of a token',
    'TOKENS',
    async () => {
      tokenServer.answer = { body: '<html>secret-of-sluice</html>' };
      return byTokens();
    },
    /KAFKA_SASL_TOKEN_URL/,
  ],
  [
    'a token without what Kafka asks for',
    'TOKENS',
    async () => {
      tokenServer.answer = { scope: 'other' };
      return byTokens();
    },
    /Kafka refuses the token; check KAFKA_SASL_SCOPE/,
  ],
  [
    'a token that has ended',
    'TOKENS',
    async () => {
      tokenServer.answer = { seconds: -100 };
      return byTokens();
    },
    /Kafka refuses the token/,
  ],
  ['a token where a password is needed', 'LOGIN', async () => byTokens(), /KAFKA_SASL_MECHANISM/],
  ['no login where one is needed', 'LOGIN', async () => tls(), /KAFKA_SASL_MECHANISM/],
  ['no TLS where it is needed', 'LOGIN', async () => login('plain'), /KAFKA_SSL/],
  ['TLS where there is none', 'none', async () => tls(), /KAFKA_SSL/],
])('%s: the hint says which variable to check, and the log no secret', async (_what, listener, env, hint) => {
  const found = await connect(listener, await env());
  expect(found.hint, `${found.error} ${found.log}`).toMatch(hint);
  expect(found.log).not.toContain('secret-of-sluice');
});
