import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { type AddressInfo, connect as connectTcp } from 'node:net';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { connect } from 'node:tls';
import { promisify } from 'node:util';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { Registry } from 'prom-client';
import { expect, onTestFinished, test } from 'vitest';
import { createLogger } from '../base/log.ts';
import { type Authority, type Certificate, createAuthority } from '../tls/testing/certificates.ts';
import { ownTls } from './own-tls.ts';
import { createHttpServer } from './server.ts';

/** Starts a server with a certificate in files that `write` replaces. */
async function start(authority: Authority) {
  const folder = await makeTempDir();
  onTestFinished(() => folder[Symbol.asyncDispose]());
  const files = { TLS_CERT_FILE: join(folder.path, 'cert'), TLS_KEY_FILE: join(folder.path, 'key') };
  const write = async ({ cert, key }: Certificate) => {
    await writeFile(files.TLS_CERT_FILE, cert);
    await writeFile(files.TLS_KEY_FILE, key);
  };
  await write(await authority.issue({ name: 'first' }));
  const log: string[] = [];
  const destination = new Writable({
    write(chunk: Buffer, _encoding, done) {
      log.push(chunk.toString());
      done();
    },
  });
  const logger = createLogger('test', 'info', destination);
  const app = createHttpServer({ logger, registry: new Registry(), readiness: () => [], tls: ownTls(files, logger) });
  onTestFinished(async () => void (await app.close()));
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as AddressInfo;
  return { port, log, write, files, stop: () => app.close() };
}

/** Sends a request over a new connection. Returns the response, and the name in the certificate of the server. */
async function request(port: number, ca: string) {
  const socket = connect({ host: '127.0.0.1', port, ca });
  let response = '';
  let name: string | undefined;
  socket.once('secureConnect', () => {
    name = String(socket.getPeerCertificate().subject.CN);
    socket.write('GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n');
  });
  for await (const chunk of socket) response += chunk;
  return { name, status: response.split('\r\n', 1)[0] };
}

test('a server with a certificate speaks TLS, and a new certificate is used for new connections', async () => {
  const authority = await createAuthority();
  const { port, write, log } = await start(authority);
  expect(await request(port, authority.cert)).toEqual({ name: 'first', status: 'HTTP/1.1 200 OK' });
  await write(await authority.issue({ name: 'second' }));
  expect(await request(port, authority.cert)).toEqual({ name: 'second', status: 'HTTP/1.1 200 OK' });
  expect(log.join('')).toContain('changed TLS files are in force');
  await write(await authority.issue({ name: 'third', isWeak: true }));
  expect(await request(port, authority.cert)).toEqual({ name: 'second', status: 'HTTP/1.1 200 OK' });
  expect(log.join('')).toMatch(/cannot be used for TLS .*those before stay in force/);
});

test('a client that does not begin its handshake does not keep a server from stopping', async () => {
  const { port, stop } = await start(await createAuthority());
  const silent = connectTcp({ host: '127.0.0.1', port });
  silent.on('error', () => undefined);
  await once(silent, 'connect');
  await stop();
  silent.destroy();
});

test('the health check of the images responds to the service, with and without TLS', async () => {
  const { port, files } = await start(await createAuthority());
  const check = (env: Readonly<Record<string, string>>) =>
    promisify(execFile)(process.execPath, [join(import.meta.dirname, 'check-health.ts')], { env }).then(
      () => 'healthy',
      () => 'unhealthy',
    );
  const PORT = String(port);
  expect(await check({ PORT, TLS_CERT_FILE: files.TLS_CERT_FILE })).toBe('healthy');
  expect(await check({ PORT })).toBe('unhealthy');
  const plain = createHttpServer({
    logger: createLogger('test', 'silent'),
    registry: new Registry(),
    readiness: () => [],
  });
  onTestFinished(async () => void (await plain.close()));
  await plain.listen({ host: '127.0.0.1', port: 0 });
  expect(await check({ PORT: String((plain.server.address() as AddressInfo).port) })).toBe('healthy');
});

test('files that cannot be used keep the certificate in force; the log says so once, without content', async () => {
  const authority = await createAuthority();
  const { port, write, log, files } = await start(authority);
  const { cert } = await authority.issue({ name: 'second' });
  await writeFile(files.TLS_CERT_FILE, cert);
  for (let count = 0; count < 2; count += 1) expect((await request(port, authority.cert)).name).toBe('first');
  const errors = log.filter((line) => JSON.parse(line).level === 'error');
  expect(errors).toEqual([expect.stringMatching(/TLS_KEY_FILE: .* is not the key .*those before stay in force/)]);
  expect(errors.join()).not.toMatch(/BEGIN/);
  const third = await authority.issue({ name: 'third' });
  await write(third);
  expect((await request(port, authority.cert)).name).toBe('third');
});
