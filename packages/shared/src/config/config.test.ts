import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { ConfigError, clickHouseEnv, integer, kafkaEnv, loadConfig, serviceEnv } from './config.ts';

const schema = z.object({ ...serviceEnv(4000), ...kafkaEnv, ...clickHouseEnv, SIZE_MAX: integer(1, 10).default(5) });

test('defaults are filled in, and an empty variable counts as unset', () => {
  const config = loadConfig(schema, {
    KAFKA_BROKERS: 'a:1, b:2',
    CLICKHOUSE_URL: 'http://c:8123',
    PORT: '',
    SIZE_MAX: '7',
    ALLOWED_HOSTS: 'localhost, Sluice.example',
  });
  expect(config.ALLOWED_HOSTS).toEqual(['localhost', 'Sluice.example']);
  expect(config).toMatchObject({ PORT: 4000, KAFKA_BROKERS: ['a:1', 'b:2'], SIZE_MAX: 7, EXIT_ON_STDIN_END: false });
});

test('every variable that is wrong is named, and no value is shown', () => {
  const env = {
    PORT: 'secret-a',
    SIZE_MAX: '11',
    CLICKHOUSE_DATABASE: 'drop table',
    CLICKHOUSE_URL: 'secret-b',
    ALLOWED_HOSTS: 'secret:1',
  };
  const load = () => loadConfig(schema, env);
  expect(load).toThrow(ConfigError);
  try {
    load();
  } catch (error) {
    const { errors, message } = error as ConfigError;
    expect(errors.map((error) => error.split(':')[0]).sort()).toEqual([
      'ALLOWED_HOSTS',
      'CLICKHOUSE_DATABASE',
      'CLICKHOUSE_URL',
      'KAFKA_BROKERS',
      'PORT',
      'SIZE_MAX',
    ]);
    expect(message).not.toMatch(/secret|drop/);
  }
});

const USABLE = { KAFKA_BROKERS: 'a:1', CLICKHOUSE_URL: 'https://c:8443' };

function errorsOf(env: Readonly<Record<string, string>>): readonly string[] {
  try {
    loadConfig(schema, { ...USABLE, ...env });
    return [];
  } catch (error) {
    return (error as ConfigError).errors;
  }
}

test('a secret may come from a file, without its last newline', async () => {
  await using folder = await makeTempDir();
  const file = join(folder.path, 'password');
  await writeFile(file, ' two\nlines\n\n');
  const config = loadConfig(schema, { ...USABLE, CLICKHOUSE_PASSWORD_FILE: file });
  expect(config.CLICKHOUSE_PASSWORD).toBe(' two\nlines\n');
});

test('a secret that is set in place of the path of its file is not shown', () => {
  expect(errorsOf({ CLICKHOUSE_PASSWORD_FILE: 'hunter2' })).toEqual([
    'CLICKHOUSE_PASSWORD_FILE: its value, which is no path beginning with / or ./, does not exist',
  ]);
});

test.each(['https://u:50%off@c', 'http://c/?password=secret', 'http://c/#x'])(
  'the address %s of ClickHouse is refused',
  (url) => {
    expect(errorsOf({ CLICKHOUSE_URL: url })).toEqual([
      expect.stringMatching(/^CLICKHOUSE_URL: must have no parameters but/),
    ]);
  },
);

test('an address of ClickHouse may have settings', () => {
  expect(errorsOf({ CLICKHOUSE_URL: 'http://u:50%25@c/?clickhouse_setting_max_threads=1' })).toEqual([]);
});

test('a secret that is given twice, or whose file cannot be used, is named without its value', async () => {
  await using folder = await makeTempDir();
  const empty = join(folder.path, 'empty');
  await writeFile(empty, '\n');
  expect(errorsOf({ CLICKHOUSE_PASSWORD: 'secret', CLICKHOUSE_PASSWORD_FILE: empty })).toEqual([
    'CLICKHOUSE_PASSWORD_FILE: CLICKHOUSE_PASSWORD is set as well; set one of them',
  ]);
  expect(errorsOf({ CLICKHOUSE_PASSWORD_FILE: empty })).toEqual([`CLICKHOUSE_PASSWORD_FILE: ${empty} is empty`]);
  const missing = join(folder.path, 'missing');
  expect(errorsOf({ CLICKHOUSE_PASSWORD_FILE: missing, PORT: 'x' })).toEqual([
    `CLICKHOUSE_PASSWORD_FILE: ${missing} does not exist`,
    'PORT: must be a number',
  ]);
});

test.each<[what: string, env: Readonly<Record<string, string>>, errors: readonly string[]]>([
  [
    'a user without a mechanism',
    { KAFKA_SASL_USERNAME: 'u' },
    ['KAFKA_SASL_MECHANISM: is required with KAFKA_SASL_USERNAME'],
  ],
  [
    'a mechanism without a login',
    { KAFKA_SASL_MECHANISM: 'plain' },
    [
      'KAFKA_SASL_USERNAME: is required with KAFKA_SASL_MECHANISM=plain',
      'KAFKA_SASL_PASSWORD: is required with KAFKA_SASL_MECHANISM=plain',
    ],
  ],
  [
    'tokens without their server',
    { KAFKA_SASL_MECHANISM: 'oauthbearer', KAFKA_SASL_USERNAME: 'u', KAFKA_SASL_PASSWORD: 'p' },
    ['KAFKA_SASL_TOKEN_URL: is required with KAFKA_SASL_MECHANISM=oauthbearer'],
  ],
  [
    'what only tokens have, with a password',
    { KAFKA_SASL_MECHANISM: 'plain', KAFKA_SASL_USERNAME: 'u', KAFKA_SASL_PASSWORD: 'p', KAFKA_SASL_SCOPE: 's' },
    ['KAFKA_SASL_SCOPE: is of no use with KAFKA_SASL_MECHANISM=plain'],
  ],
  [
    'a login of AWS with a password, and without region and TLS',
    { KAFKA_SASL_MECHANISM: 'aws-msk-iam', KAFKA_SASL_USERNAME: 'u' },
    [
      'AWS_REGION: is required with KAFKA_SASL_MECHANISM=aws-msk-iam',
      'KAFKA_SSL: is required with KAFKA_SASL_MECHANISM=aws-msk-iam',
      'KAFKA_SASL_USERNAME: is of no use with KAFKA_SASL_MECHANISM=aws-msk-iam',
    ],
  ],
  [
    'extensions that are no pairs, and an address that is none',
    {
      ...{ KAFKA_SASL_MECHANISM: 'oauthbearer', KAFKA_SASL_USERNAME: 'u', KAFKA_SASL_PASSWORD: 'p' },
      ...{ KAFKA_SASL_TOKEN_URL: 'ftp://t', KAFKA_SASL_EXTENSIONS: 'a=1,auth=x' },
    },
    [
      'KAFKA_SASL_TOKEN_URL: must be an http:// or https:// address',
      'KAFKA_SASL_EXTENSIONS: must be pairs such as name=value',
    ],
  ],
  [
    'a certificate without a key, and a key without a certificate',
    { KAFKA_SSL: 'true', KAFKA_SSL_CERT_FILE: '/no/cert', TLS_KEY_FILE: '/no/key' },
    [
      'KAFKA_SSL_KEY_FILE: is required with KAFKA_SSL_CERT_FILE',
      'KAFKA_SSL_CERT_FILE: /no/cert does not exist',
      'TLS_CERT_FILE: is required with TLS_KEY_FILE',
      'TLS_KEY_FILE: /no/key does not exist',
    ],
  ],
  [
    'files of TLS without TLS',
    { KAFKA_SSL_CA_FILE: '/no/ca', CLICKHOUSE_URL: 'http://c:8123', CLICKHOUSE_CA_FILE: '/no/ca' },
    [
      'KAFKA_SSL_CA_FILE: /no/ca does not exist',
      'KAFKA_SSL_CA_FILE: is of use only with KAFKA_SSL=true',
      'CLICKHOUSE_CA_FILE: /no/ca does not exist',
      'CLICKHOUSE_CA_FILE: is of use only with an https:// CLICKHOUSE_URL',
    ],
  ],
  [
    'a certificate and a password for ClickHouse',
    { CLICKHOUSE_CERT_FILE: '/no/c', CLICKHOUSE_KEY_FILE: '/no/k', CLICKHOUSE_PASSWORD: 'secret' },
    [
      'CLICKHOUSE_CERT_FILE: /no/c does not exist',
      'CLICKHOUSE_KEY_FILE: /no/k does not exist',
      'CLICKHOUSE_CERT_FILE: ClickHouse takes a certificate or a password, not both; remove one of them',
    ],
  ],
  [
    'a certificate and the password of the account for migrations, which is not named',
    { CLICKHOUSE_CERT_FILE: '/no/c', CLICKHOUSE_KEY_FILE: '/no/k', CLICKHOUSE_MIGRATE_PASSWORD: 'secret' },
    [
      'CLICKHOUSE_CERT_FILE: /no/c does not exist',
      'CLICKHOUSE_KEY_FILE: /no/k does not exist',
      'CLICKHOUSE_CERT_FILE: ClickHouse takes a certificate or a password, not both; remove one of them',
      'CLICKHOUSE_MIGRATE_USER: is required with CLICKHOUSE_MIGRATE_PASSWORD',
    ],
  ],
  [
    'a certificate and a password in the address of ClickHouse',
    { CLICKHOUSE_CERT_FILE: '/no/c', CLICKHOUSE_KEY_FILE: '/no/k', CLICKHOUSE_URL: 'https://u:secret@c' },
    [
      'CLICKHOUSE_CERT_FILE: /no/c does not exist',
      'CLICKHOUSE_KEY_FILE: /no/k does not exist',
      'CLICKHOUSE_CERT_FILE: ClickHouse takes a certificate or a password, not both; remove one of them',
    ],
  ],
])('%s: every error is named at once', (_what, env, errors) => {
  expect(errorsOf(env)).toEqual(errors);
});
