import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { eventually } from '@sluice/shared/testing/eventually';
import { type Certificate, createAuthority } from '@sluice/shared/tls/testing/certificates';
import { expect, test } from 'vitest';
import { commandLines } from '../kit/command-lines.ts';
import { ownClickHouse } from '../kit/engines.ts';
import { type Pipeline, startPipeline } from '../kit/pipeline.ts';
import { allMechanisms, clientAuthority, keystore, secureKafka } from '../kit/secure-kafka.ts';
import { SERVICE_NAMES, type ServiceName, startService } from '../kit/service.ts';
import { startTlsProxy } from '../kit/tls-proxy.ts';

const KAFKA_LOGIN = { user: 'sluice', password: 'kafka-secret-5d1f' };
const CLICKHOUSE_PASSWORD = 'clickhouse-secret-93ab';
const WRONG_PASSWORD = 'wrong-secret-77c0';

/** Certificates of one generation, all of one authority. */
interface Generation {
  readonly ca: string;
  readonly broker: Certificate;
  readonly clickhouse: Certificate;
  readonly client: Certificate;
}

async function createGeneration(name: string): Promise<Generation> {
  const authority = await createAuthority(name);
  const [broker, clickhouse, client] = await Promise.all(
    ['broker', 'clickhouse', `client of ${name}`].map((subject) => authority.issue({ name: subject })),
  );
  return { ca: authority.cert, broker, clickhouse, client } as Generation;
}

async function settings(folder: string, { ca, broker }: Generation) {
  return { ...(await keystore(folder, 'broker', broker)), ...(await clientAuthority(folder, 'clients', ca)) };
}

test('events pass over TLS with certificates and logins everywhere, also with new ones, and no output has a secret', async () => {
  await using cleanup = new AsyncDisposableStack();
  const folder = cleanup.use(await makeTempDir()).path;
  const file = (name: string) => join(folder, name);
  const write = async (contents: Readonly<Record<string, string>>) => {
    for (const [name, text] of Object.entries(contents)) await writeFile(file(name), text);
  };
  const writeClient = ({ ca, client }: Generation) => write({ ca, cert: client.cert, key: client.key });

  const [first, second, own] = [
    await createGeneration('first'),
    await createGeneration('second'),
    await createAuthority(),
  ];
  const ownCertificate = await own.issue();
  await writeClient(first);
  await write({
    'own-ca': own.cert,
    'own-cert': ownCertificate.cert,
    'own-key': ownCertificate.key,
    'kafka-password': `${KAFKA_LOGIN.password}\n`,
    'clickhouse-password': CLICKHOUSE_PASSWORD,
  });
  setDefaultCACertificates([...getCACertificates('default'), own.cert]);

  const [kafka, clickhouse] = await Promise.all([
    secureKafka(KAFKA_LOGIN, {
      SECURE: { protocol: 'SASL_SSL', settings: { ...(await settings(folder, first)), ...allMechanisms(KAFKA_LOGIN) } },
    }),
    ownClickHouse({ password: CLICKHOUSE_PASSWORD }),
  ]);
  cleanup.use(kafka);
  cleanup.use(clickhouse);
  const proxy = cleanup.use(await startTlsProxy(clickhouse, { ...first.clickhouse, ca: first.ca }));

  const ofKafka = {
    KAFKA_SSL: 'true',
    KAFKA_SSL_CA_FILE: file('ca'),
    KAFKA_SSL_CERT_FILE: file('cert'),
    KAFKA_SSL_KEY_FILE: file('key'),
    KAFKA_SASL_USERNAME: KAFKA_LOGIN.user,
  };
  // In place of the accounts of a pipeline, which have passwords in variables.
  const administrator = {
    ...{ CLICKHOUSE_USER: clickhouse.user, CLICKHOUSE_PASSWORD: '' },
    ...{ CLICKHOUSE_MIGRATE_USER: '', CLICKHOUSE_MIGRATE_PASSWORD: '' },
  };
  const running = await startPipeline({
    kafkaBrokers: kafka.listeners['SECURE'] ?? [],
    clickhouseUrl: proxy.url,
    name: 'secure',
    env: {
      LOG_LEVEL: 'trace',
      TLS_CERT_FILE: file('own-cert'),
      TLS_KEY_FILE: file('own-key'),
      NODE_EXTRA_CA_CERTS: file('own-ca'),
      CLICKHOUSE_CA_FILE: file('ca'),
    },
    envOf: {
      'ingest-api': {
        ...ofKafka,
        KAFKA_SASL_MECHANISM: 'scram-sha-512',
        KAFKA_SASL_PASSWORD_FILE: file('kafka-password'),
      },
      writer: {
        ...ofKafka,
        KAFKA_SASL_MECHANISM: 'scram-sha-256',
        KAFKA_SASL_PASSWORD: KAFKA_LOGIN.password,
        ...administrator,
        CLICKHOUSE_CERT_FILE: file('cert'),
        CLICKHOUSE_KEY_FILE: file('key'),
      },
      'query-api': { ...administrator, CLICKHOUSE_PASSWORD_FILE: file('clickhouse-password') },
    },
  });
  cleanup.use(running);
  await submit(running);
  await running.settled(1);
  expect([...proxy.logins]).toEqual(['client of first']);
  // query-api reads the metrics of the others over their TLS.
  await eventually(async () => (await running.get('/pipeline')).body).toMatchObject({ missing: [] });

  // The files of the services change before those of the engines: whoever is connected stays so.
  await writeClient(second);
  await settings(folder, second);
  proxy.renew({ ...second.clickhouse, ca: second.ca });
  await kafka.restart();
  await submit(running);
  await running.settled(2);
  expect([...proxy.logins]).toEqual(['client of first', 'client of second']);

  // Broken files keep those before in force.
  await write({ key: first.client.key });
  proxy.renew({ ...second.clickhouse, ca: second.ca });
  await kafka.restart();
  await submit(running);
  await running.settled(3);
  for (const name of ['ingest-api', 'writer'] as const) {
    expect(running.services[name].log()).toMatch(/KAFKA_SSL_KEY_FILE: \S+ is not the key of the certificate/);
  }
  await write({ key: second.client.key });

  // Errors of a login, too.
  const wrong: Partial<Record<ServiceName, Record<string, string>>> = {
    'ingest-api': { KAFKA_SASL_PASSWORD: WRONG_PASSWORD, KAFKA_SASL_PASSWORD_FILE: '' },
    'query-api': { CLICKHOUSE_PASSWORD: WRONG_PASSWORD, CLICKHOUSE_PASSWORD_FILE: '' },
  };
  const refused = Object.entries(wrong).map(([name, env]) => {
    const service = startService(name as ServiceName, 0, { ...running.environmentOf(name as ServiceName), ...env });
    cleanup.defer(() => service.kill9());
    return service;
  });
  await eventually(() => refused[0]?.log()).toContain('Kafka refuses the login; check KAFKA_SASL_USERNAME');
  await eventually(() => refused[1]?.log()).toContain('ClickHouse refuses the login; check CLICKHOUSE_USER');

  const services = SERVICE_NAMES.map((name) => running.services[name]);
  const pages = await Promise.all(
    services.flatMap(({ url }) =>
      ['/metrics', '/readyz', '/'].map(async (path) => (await fetch(`${url}${path}`)).text()),
    ),
  );
  const shown = [...services, ...refused].map((service) => service.log());
  expect(shown.join('\n')).toContain('"level":"debug"');
  const output = [...shown, ...pages, ...(await commandLines())].join('\n');
  const keys = [first.client.key, second.client.key, ownCertificate.key].map((key) => key.split('\n')[1] ?? '');
  for (const secret of [KAFKA_LOGIN.password, CLICKHOUSE_PASSWORD, WRONG_PASSWORD, running.key, ...keys]) {
    expect(secret).not.toBe('');
    for (const form of formsOf(secret)) {
      const found = output.indexOf(form);
      expect(found, output.slice(Math.max(0, found - 200), found)).toBe(-1);
    }
  }
});

test('a secret is found in the headers of a login', () => {
  for (const user of ['', 'a', 'ab', 'abc']) {
    const header = Buffer.from(`${user}:${CLICKHOUSE_PASSWORD}`).toString('base64');
    expect(formsOf(CLICKHOUSE_PASSWORD).some((form) => header.includes(form))).toBe(true);
  }
});

/** A secret as it is, and in Base64, which behind something else may begin at its second or third byte. */
function formsOf(secret: string): string[] {
  const encoded = [0, 1, 2].map((skipped) => Buffer.from(secret.slice(skipped)).toString('base64'));
  return [secret, ...encoded.map((text) => text.replace(/[^=]{0,3}=*$/, ''))];
}

async function submit(running: Pipeline): Promise<void> {
  // While Kafka restarts, the response is 503.
  await eventually(async () => {
    const { status } = await running.submit({ foreignUserGroupId: 'g', foreignUserId: 'u', events: [{ event: 'e' }] });
    return status;
  }).toBe(202);
}
