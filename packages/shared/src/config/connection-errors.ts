import { z } from 'zod';
import { readTlsMaterial, TlsFilesError, type TlsPrefix, tlsPaths } from '../tls/tls-material.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Returns what is wrong with the variables that say how services connect and are connected to, beyond what each of them
 * says alone: combinations without a sense, and files that cannot be used.
 *
 * @param env the variables that are set and known
 */
export function connectionErrors(env: Environment): string[] {
  return [...kafkaErrors(env), ...clickHouseErrors(env), ...tlsErrors(env, 'TLS')];
}

function kafkaErrors(env: Environment): string[] {
  const errors = tlsErrors(env, 'KAFKA_SSL');
  // What is no boolean is an error of its own.
  if (z.stringbool().safeParse(env['KAFKA_SSL'] ?? 'false').data === false) {
    errors.push(...namesOf(env, 'KAFKA_SSL').map((name) => `${name}: is of use only with KAFKA_SSL=true`));
  }
  return [...errors, ...loginErrors(env)];
}

const CREDENTIALS = ['KAFKA_SASL_USERNAME', 'KAFKA_SASL_PASSWORD'] as const;
const OF_TOKENS = ['KAFKA_SASL_TOKEN_URL', 'KAFKA_SASL_SCOPE', 'KAFKA_SASL_EXTENSIONS'] as const;

/** What a mechanism needs, and what it has no use for. */
const LOGINS: Readonly<Record<string, { readonly needs: readonly string[]; readonly ignores: readonly string[] }>> = {
  plain: { needs: CREDENTIALS, ignores: OF_TOKENS },
  'scram-sha-256': { needs: CREDENTIALS, ignores: OF_TOKENS },
  'scram-sha-512': { needs: CREDENTIALS, ignores: OF_TOKENS },
  oauthbearer: { needs: [...CREDENTIALS, 'KAFKA_SASL_TOKEN_URL'], ignores: [] },
  'aws-msk-iam': { needs: ['AWS_REGION', 'KAFKA_SSL'], ignores: [...CREDENTIALS, ...OF_TOKENS] },
};

function loginErrors(env: Environment): string[] {
  const mechanism = env['KAFKA_SASL_MECHANISM'];
  if (mechanism === undefined) {
    const given = [...CREDENTIALS, ...OF_TOKENS].filter((name) => env[name] !== undefined);
    return given.length > 0 ? [`KAFKA_SASL_MECHANISM: is required with ${given.join(' and ')}`] : [];
  }
  // Another mechanism, and a file that cannot be read, are errors of their own.
  const { needs, ignores } = LOGINS[mechanism] ?? { needs: [], ignores: [] };
  const missing = needs.filter((name) => env[name] === undefined && env[`${name}_FILE`] === undefined);
  const useless = ignores.filter((name) => env[name] !== undefined);
  return [
    ...missing.map((name) => `${name}: is required with KAFKA_SASL_MECHANISM=${mechanism}`),
    ...useless.map((name) => `${name}: is of no use with KAFKA_SASL_MECHANISM=${mechanism}`),
  ];
}

function clickHouseErrors(env: Environment): string[] {
  const errors = tlsErrors(env, 'CLICKHOUSE');
  const url = URL.parse(env['CLICKHOUSE_URL'] ?? '');
  if (url?.protocol === 'http:') {
    errors.push(...namesOf(env, 'CLICKHOUSE').map((name) => `${name}: is of use only with an https:// CLICKHOUSE_URL`));
  }
  const passwords = [env['CLICKHOUSE_PASSWORD'], env['CLICKHOUSE_MIGRATE_PASSWORD'], url?.password || undefined];
  if (env['CLICKHOUSE_CERT_FILE'] !== undefined && passwords.some((password) => password !== undefined)) {
    errors.push('CLICKHOUSE_CERT_FILE: ClickHouse takes a certificate or a password, not both; remove one of them');
  }
  for (const account of ['CLICKHOUSE_MIGRATE', 'CLICKHOUSE_SQL', 'CLICKHOUSE_WEBHOOKS']) {
    if (env[`${account}_PASSWORD`] !== undefined && env[`${account}_USER`] === undefined) {
      errors.push(`${account}_USER: is required with ${account}_PASSWORD`);
    }
  }
  return errors;
}

/** Returns the errors of files, and of a certificate without a key or a key without a certificate. */
function tlsErrors(env: Environment, prefix: TlsPrefix): string[] {
  const paths = tlsPaths(env, prefix);
  const errors: string[] = [];
  if (paths.cert && !paths.key) errors.push(`${prefix}_KEY_FILE: is required with ${paths.cert.variable}`);
  if (paths.key && !paths.cert) errors.push(`${prefix}_CERT_FILE: is required with ${paths.key.variable}`);
  try {
    readTlsMaterial(paths);
  } catch (error) {
    if (!(error instanceof TlsFilesError)) throw error;
    errors.push(...error.errors);
  }
  return errors;
}

function namesOf(env: Environment, prefix: TlsPrefix): string[] {
  return Object.values(tlsPaths(env, prefix)).map(({ variable }) => variable);
}
