import type { Logger } from '../base/log.ts';
import type { ServiceConfig } from '../config/config.ts';
import { TlsFiles } from '../tls/tls-files.ts';
import { tlsPaths } from '../tls/tls-material.ts';

/**
 * Returns the certificate and key of a service; `undefined` when it speaks HTTP without TLS.
 *
 * @throws {TlsFilesError} when the files cannot be used
 */
export function ownTls(
  config: Pick<ServiceConfig, 'TLS_CERT_FILE' | 'TLS_KEY_FILE'>,
  logger: Logger,
): TlsFiles | undefined {
  return config.TLS_CERT_FILE === undefined ? undefined : new TlsFiles(tlsPaths(config, 'TLS'), logger);
}
