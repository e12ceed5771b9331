import { resolve } from 'node:path';
import { ArgumentsError } from '@sluice/shared/config/command-line';
import type { BackupConfig } from './config.ts';

/** Where a backup is: a directory of ClickHouse's machine, or an address of S3. */
export interface BackupLocation {
  /** For people: it holds no credentials. */
  readonly name: string;
  /** The argument of {@link engine} for each part of the backup. */
  readonly pathOf: (part: string) => string;
  /** The backup engine with its parameters, in SQL. */
  readonly engine: string;
  /** The parameters besides `path`. */
  readonly params: Readonly<Record<string, string>>;
}

const DIRECTORY = 'File({path:String})';
const S3 = 'S3({path:String})';
const S3_WITH_KEY = 'S3({path:String}, {keyId:String}, {secret:String})';

/**
 * Reads the value of `--to` or `--from`: a directory, or `s3://bucket/path`, or the `https://` address of a bucket with a
 * path.
 *
 * @param cwd where relative directories start
 * @throws {ArgumentsError}
 */
export function parseBackupLocation(option: string, text: string, config: BackupConfig, cwd: string): BackupLocation {
  if (text === '')
    throw new ArgumentsError(`${option} is needed: a directory, or an address such as s3://BUCKET/PATH.`);
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) {
    const directory = resolve(cwd, text);
    return { name: directory, pathOf: (part) => `${directory}/${part}`, engine: DIRECTORY, params: {} };
  }
  const url = URL.parse(text);
  if (!url || !['s3:', 'http:', 'https:'].includes(url.protocol)) {
    throw new ArgumentsError(
      `${option} must be a directory, or an address that begins with s3://, https:// or http://.`,
    );
  }
  if (url.username || url.password || url.search || url.hash) {
    throw new ArgumentsError(
      `${option} must be an address without credentials and parameters; BACKUP_S3_ACCESS_KEY_ID and ` +
        'BACKUP_S3_SECRET_ACCESS_KEY are the credentials.',
    );
  }
  const name = text.replace(/\/+$/, '');
  const path = url.protocol === 's3:' ? url.pathname : url.pathname.replace(/^\/[^/]*/, '');
  if (path.replaceAll('/', '') === '') throw new ArgumentsError(`${option} must name a bucket and a path in it.`);
  const { BACKUP_S3_ACCESS_KEY_ID: keyId, BACKUP_S3_SECRET_ACCESS_KEY: secret } = config;
  const key = keyId !== undefined && secret !== undefined ? { keyId, secret } : undefined;
  return {
    name,
    pathOf: (part) => `${name}/${part}`,
    engine: key ? S3_WITH_KEY : S3,
    params: { ...key },
  };
}
