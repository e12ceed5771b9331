import type { Agent as HttpAgent } from 'node:http';
import { Agent, type AgentOptions } from 'node:https';
import type { Logger } from '../base/log.ts';
import type { ClickHouseConfig } from '../config/config.ts';
import { TlsFiles } from '../tls/tls-files.ts';
import { tlsPaths } from '../tls/tls-material.ts';

export interface Login {
  readonly user: string;
  readonly password: string;
}

/** Returns the user and the password of a configuration. As with @clickhouse/client, those in the address come first. */
export function loginOf(config: ClickHouseConfig): Login {
  const url = new URL(config.CLICKHOUSE_URL);
  return {
    user: decodeURIComponent(url.username) || config.CLICKHOUSE_USER,
    password: decodeURIComponent(url.password) || (config.CLICKHOUSE_PASSWORD ?? ''),
  };
}

/**
 * Returns the headers that log in to ClickHouse: with a password, or with the client certificate, which ClickHouse
 * refuses beside a password.
 */
export function loginHeaders(config: ClickHouseConfig): Readonly<Record<string, string>> {
  const { user, password } = loginOf(config);
  if (config.CLICKHOUSE_CERT_FILE !== undefined) {
    return { 'x-clickhouse-user': user, 'x-clickhouse-ssl-certificate-auth': 'on' };
  }
  return { authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}` };
}

/**
 * Returns the agent for an https:// address; `undefined` for http://. Each new connection uses the files as they are then.
 *
 * @throws {TlsFilesError} when the files of TLS cannot be used
 */
export function tlsAgent(config: ClickHouseConfig, options: AgentOptions, logger?: Logger): HttpAgent | undefined {
  if (new URL(config.CLICKHOUSE_URL).protocol !== 'https:') return undefined;
  return new TlsAgent(new TlsFiles(tlsPaths(config, 'CLICKHOUSE'), logger), options);
}

class TlsAgent extends Agent {
  readonly #files: TlsFiles;

  constructor(files: TlsFiles, options: AgentOptions) {
    // A resumed session would accept a certificate without checking it against the present authorities.
    super({ ...options, maxCachedSessions: 0 });
    this.#files = files;
  }

  override createConnection(...[options, callback]: Parameters<Agent['createConnection']>) {
    return super.createConnection({ ...options, ...this.#files.current() }, callback);
  }
}
