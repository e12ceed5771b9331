import { once } from 'node:events';
import { type IncomingHttpHeaders, request } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { LocalClickHouse } from '@sluice/local-stack/clickhouse';
import type { Certificate } from '@sluice/shared/tls/testing/certificates';

/** The certificate of a server, and the authority of its clients. */
export interface ProxyTls extends Certificate {
  readonly ca: string;
}

/** ClickHouse over https. */
export interface TlsProxy extends AsyncDisposable {
  readonly url: string;
  /** The common names of the certificates by which clients have logged in. */
  readonly logins: ReadonlySet<string>;
  /** Uses these from now on, and closes the connections that there are. */
  renew(tls: ProxyTls): void;
}

/** Starts a server that speaks TLS in front of a ClickHouse, and lets clients log in by certificate, as ClickHouse does. */
export async function startTlsProxy(clickhouse: LocalClickHouse, tls: ProxyTls): Promise<TlsProxy> {
  const logins = new Set<string>();
  // A login by password needs no certificate.
  const options = { requestCert: true, rejectUnauthorized: false };
  const server = createServer({ ...tls, ...options }, (incoming, response) => {
    const headers = login(incoming.headers, incoming.socket as TLSSocket);
    if (headers === undefined) {
      response.writeHead(403).end('Code: 516. DB::Exception: Authentication failed. (AUTHENTICATION_FAILED)');
      return;
    }
    const { method, url } = incoming;
    const sent = request(`${clickhouse.url}${url}`, { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    sent.on('error', () => response.destroy());
    response.on('close', () => sent.destroy());
    incoming.pipe(sent);
  });

  /** Returns the headers for ClickHouse; `undefined` when the client may not log in. */
  function login(headers: IncomingHttpHeaders, socket: TLSSocket): IncomingHttpHeaders | undefined {
    const { 'x-clickhouse-ssl-certificate-auth': byCertificate, 'x-clickhouse-user': _user, ...others } = headers;
    if (byCertificate === undefined) return headers;
    if (!socket.authorized || others.authorization !== undefined || others['x-clickhouse-key'] !== undefined) {
      return undefined;
    }
    logins.add(String(socket.getPeerCertificate().subject.CN));
    const credentials = Buffer.from(`${clickhouse.user}:${clickhouse.password}`).toString('base64');
    return { ...others, authorization: `Basic ${credentials}` };
  }

  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    logins,
    renew(renewed) {
      server.setSecureContext(renewed);
      server.closeAllConnections();
    },
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}
