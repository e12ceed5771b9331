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
  const credentials = ['KAFKA_SASL_USERNAME', 'KAFKA_SASL_PASSWORD'];
  if (env['KAFKA_SASL_MECHANISM'] !== undefined) {
    // A file that cannot be read is an error of its own.
    const missing = credentials.filter((name) => env[name] === undefined && env[`${name}_FILE`] === undefined);
    errors.push(...missing.map((name) => `${name}: is required with KAFKA_SASL_MECHANISM`));
  } else {
    const given = credentials.filter((name) => env[name] !== undefined);
    if (given.length > 0) errors.push(`KAFKA_SASL_MECHANISM: is required with ${given.join(' and ')}`);
  }
  return errors;
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
