import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { type AddressInfo, connect, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { createServer as createTlsServer, getCACertificates, setDefaultCACertificates } from 'node:tls';
import { PINNED_SETTINGS } from '@sluice/shared/clickhouse/settings';
import { eventually } from '@sluice/shared/testing/eventually';
import { afterEach, expect, inject, test } from 'vitest';
import { type ClickHouseReader, HttpClickHouseReader, type ReadRequest, type Row } from './clickhouse-reader.ts';
import { ClickHouseException, ConnectionFailure, QueryTooLong } from './read-failures.ts';
import { SQL_BYTES_MAX, VALUE_CHARACTERS_MAX } from './statement-request.ts';

const SETTINGS = { ...PINNED_SETTINGS, readonly: '1', cancel_http_readonly_queries_on_client_close: '1' };
const closing: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

function readerOf(url: string, config: Record<string, string> = {}): ClickHouseReader {
  const reader = new HttpClickHouseReader(
    {
      ...{ CLICKHOUSE_URL: url, CLICKHOUSE_DATABASE: 'default', CLICKHOUSE_USER: 'default', CLICKHOUSE_PASSWORD: '' },
      ...config,
    },
    { connectionsMax: 4, settings: SETTINGS },
  );
  closing.push(() => reader.close());
  return reader;
}

function request(sql: string, given: Partial<ReadRequest> = {}): ReadRequest {
  return { sql, params: {}, settings: {}, queryId: randomUUID(), signal: new AbortController().signal, ...given };
}

async function rowsOf(reader: ClickHouseReader, given: ReadRequest): Promise<readonly Row[]> {
  const rows: Row[] = [];
  for await (const batch of reader.read(given)) rows.push(...batch);
  return rows;
}

async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** A TCP proxy in front of ClickHouse. `onClient` may do with a connection what networks and servers do. */
async function proxy(onClient: (client: Socket, server: Socket, index: number) => void) {
  const clients: Socket[] = [];
  const { hostname, port } = new URL(inject('clickhouseUrl'));
  const server = createTcpServer((client) => {
    const upstream = connect(Number(port), hostname);
    for (const socket of [client, upstream]) socket.on('error', () => undefined);
    client.on('close', () => upstream.destroy());
    upstream.on('close', () => client.destroy());
    client.pipe(upstream);
    onClient(client, upstream, clients.push(client) - 1);
  });
  const url = `http://127.0.0.1:${await listen(server)}`;
  closing.push(() => {
    for (const client of clients) client.destroy();
    server.close();
  });
  return { url, clients };
}

test('values come back as they were bound, whatever they hold', async () => {
  const hostile = `'\\\t\n\r\0\b"{}%2F&?#+ ä\u{1f600}\ufffd\\N`;
  const sql = 'SELECT {text:String}, {texts:Array(String)}, {number:Int64}';
  const params = { text: hostile, texts: [hostile, '', "a','b"], number: -5 };
  expect(await rowsOf(readerOf(inject('clickhouseUrl')), request(sql, { params }))).toEqual([
    [params.text, params.texts, -5],
  ]);
});

test('many rows arrive in batches, complete and in order, and on one connection', async () => {
  const { url, clients } = await proxy((client, server) => server.pipe(client));
  const reader = readerOf(url);
  const sql = "SELECT number, repeat('ä', number % 300) FROM numbers(100000)";
  const rows = await rowsOf(reader, request(sql));
  expect(rows).toHaveLength(100_000);
  expect(rows.every(([number, text], index) => number === index && text === 'ä'.repeat(index % 300))).toBe(true);
  await rowsOf(reader, request('SELECT 1'));
  expect(clients).toHaveLength(1);
});

test("ClickHouse's error is thrown with its number, before the first row and after many", async () => {
  const reader = readerOf(inject('clickhouseUrl'));
  await expect(rowsOf(reader, request('SELECT * FROM there_is_none'))).rejects.toMatchObject({
    name: 'ClickHouseException',
    code: 60,
  });
  let seen = 0;
  const sql = "SELECT throwIf(number = 3000000), repeat('x', 10) FROM numbers(10000000)";
  const reading = (async () => {
    for await (const batch of reader.read(request(sql, { settings: { max_block_size: '1000', max_threads: '1' } }))) {
      seen += batch.length;
    }
  })();
  await expect(reading).rejects.toThrow(ClickHouseException);
  await expect(reading).rejects.toMatchObject({ code: 395 });
  expect(seen).toBeGreaterThan(1_000);
});

const ENCODED = Math.floor(VALUE_CHARACTERS_MAX / '%22'.length);

test.each([
  ['a value', 'SELECT length({value:String})', { value: 'v'.repeat(VALUE_CHARACTERS_MAX) }, VALUE_CHARACTERS_MAX],
  ['an encoded value', 'SELECT length({value:String})', { value: `v${'"'.repeat(ENCODED)}v` }, ENCODED + 2],
  ['SQL', `SELECT length('${'s'.repeat(SQL_BYTES_MAX - 17)}')`, {}, SQL_BYTES_MAX - 17],
])('%s as long as ClickHouse takes is read, and a longer one is refused by name', async (_, sql, params, length) => {
  const reader = readerOf(inject('clickhouseUrl'));
  expect(await rowsOf(reader, request(sql, { params }))).toEqual([[length]]);
  const longer = request(sql.replace("')", "s')"), {
    params: Object.fromEntries(Object.entries(params).map(([name, value]) => [name, `${value}v`])),
  });
  await expect(rowsOf(reader, longer)).rejects.toThrow(QueryTooLong);
});

test('an address as long as ClickHouse takes is read, and a longer one is refused by name', async () => {
  const reader = readerOf(inject('clickhouseUrl'));
  const values = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`value${index}`, 'v'.repeat(100_000)]));
  const sql = 'SELECT length({value0:String})';
  expect(await rowsOf(reader, request(sql, { params: values(10) }))).toEqual([[100_000]]);
  await expect(rowsOf(reader, request(sql, { params: values(11) }))).rejects.toThrow(QueryTooLong);
});

test('a header may be as long as a value, and ClickHouse refuses a longer one', async () => {
  const reader = readerOf(inject('clickhouseUrl'));
  const withHeader = (length: number) => request('SELECT 1', { headers: { 'x-sluice-a': 'v'.repeat(length) } });
  expect(await rowsOf(reader, withHeader(VALUE_CHARACTERS_MAX))).toEqual([[1]]);
  await expect(rowsOf(reader, withHeader(VALUE_CHARACTERS_MAX + 1))).rejects.toThrow();
});

test('a query goes on a new connection when the server has just closed the idle one', async () => {
  const { url, clients } = await proxy((client, server, index) => {
    server.pipe(client);
    // The first connection breaks when its second query arrives.
    let queries = 0;
    client.on('data', () => {
      queries += 1;
      if (index === 0 && queries === 2) client.resetAndDestroy();
    });
  });
  const reader = readerOf(url);
  expect(await rowsOf(reader, request('SELECT 1'))).toEqual([[1]]);
  expect(await rowsOf(reader, request('SELECT 2'))).toEqual([[2]]);
  expect(clients).toHaveLength(2);
});

test('a new connection that breaks is a connection failure, and the query is not sent again', async () => {
  const { url, clients } = await proxy((client) => client.once('data', () => client.resetAndDestroy()));
  await expect(rowsOf(readerOf(url), request('SELECT 1'))).rejects.toThrow(ConnectionFailure);
  expect(clients).toHaveLength(1);
});

test('a response that breaks off is a connection failure, not a shorter result', async () => {
  const { url } = await proxy((client, server) => {
    let bytes = 0;
    server.on('data', (chunk) => {
      bytes += chunk.length;
      if (bytes > 200_000) client.destroy();
      else client.write(chunk);
    });
  });
  await expect(rowsOf(readerOf(url), request('SELECT number FROM numbers(1000000)'))).rejects.toThrow(
    ConnectionFailure,
  );
});

test.each([
  ['an error of a gateway', 502, '<html>Bad Gateway</html>'],
  ['a response that a gateway cut in a row', 200, '[1]\n[2'],
])('%s is a connection failure', async (_, status, body) => {
  const gateway = createServer((_request, response) => response.writeHead(status).end(body));
  closing.push(() => gateway.close());
  const url = `http://127.0.0.1:${await listen(gateway)}`;
  await expect(rowsOf(readerOf(url), request('SELECT 1'))).rejects.toThrow(ConnectionFailure);
});

test('an idle connection is closed before ClickHouse would close it', async () => {
  let isClosedByServer = false;
  const { url, clients } = await proxy((client, server) => {
    server.pipe(client, { end: false });
    server.on('end', () => {
      isClosedByServer = true;
    });
  });
  await rowsOf(readerOf(url), request('SELECT 1'));
  expect(clients[0]?.closed).toBe(false);
  await eventually(() => clients[0]?.closed, { interval: 50 }).toBe(true);
  expect(isClosedByServer).toBe(false);
});

test.each(['before the first row', 'in the middle of the rows'])('the signal ends a query %s', async (when) => {
  const { url, clients } = await proxy((client, server) => server.pipe(client));
  const controller = new AbortController();
  const { signal } = controller;
  const slow = request('SELECT sleepEachRow(3) FROM numbers(600)', { signal, settings: { max_block_size: '1' } });
  const long = request('SELECT number FROM numbers(1000000000)', { signal });
  const rows = readerOf(url).read(when === 'before the first row' ? slow : long);
  const first = rows.next();
  if (when === 'before the first row')
    await eventually(() => clients.some(({ bytesRead }) => bytesRead > 0)).toBe(true);
  else await first;
  controller.abort(new Error('enough'));
  await expect(when === 'before the first row' ? first : rows.next()).rejects.toThrow('enough');
  await eventually(() => clients.every(({ closed }) => closed)).toBe(true);
});

test('the signal ends a query whose last row has arrived and is not taken yet', async () => {
  const controller = new AbortController();
  const { signal } = controller;
  const rows = readerOf(inject('clickhouseUrl')).read(request('SELECT number FROM numbers(15000)', { signal }));
  await rows.next();
  await wait(500);
  controller.abort(new Error('enough'));
  await expect(
    (async () => {
      for await (const _ of rows);
    })(),
  ).rejects.toThrow('enough');
});

test('a reader that stops takes no more rows, and closes the connection', async () => {
  let bytes = 0;
  const { url, clients } = await proxy((client, server) => {
    server.on('data', (chunk) => {
      bytes += chunk.length;
    });
    server.pipe(client);
  });
  const rows = readerOf(url).read(request('SELECT number, randomPrintableASCII(100) FROM numbers(10000000)'));
  await rows.next();
  // The buffers fill up, and ClickHouse waits.
  await eventually(
    async () => {
      const before = bytes;
      await wait(300);
      return bytes - before;
    },
    { timeout: 20_000 },
  ).toBe(0);
  expect(bytes).toBeLessThan(50_000_000);
  await rows.return();
  await eventually(() => clients.every(({ closed }) => closed)).toBe(true);
});

test('credentials are sent in a header, from the configuration or the address', async () => {
  const seen: (string | undefined)[] = [];
  const server = createServer(({ headers }: { headers: IncomingHttpHeaders }, response) => {
    seen.push(headers.authorization);
    response.end('[1]\n');
  });
  closing.push(() => server.close());
  const port = await listen(server);
  await rowsOf(
    readerOf(`http://127.0.0.1:${port}`, { CLICKHOUSE_USER: 'jörg', CLICKHOUSE_PASSWORD: 'pä:ß' }),
    request('SELECT 1'),
  );
  await rowsOf(readerOf(`http://ann:s%3Ax@127.0.0.1:${port}`), request('SELECT 1'));
  expect(seen.map((header) => Buffer.from(String(header).slice('Basic '.length), 'base64').toString())).toEqual([
    'jörg:pä:ß',
    'ann:s:x',
  ]);
  await expect(
    rowsOf(readerOf(inject('clickhouseUrl'), { CLICKHOUSE_USER: 'nobody' }), request('SELECT 1')),
  ).rejects.toMatchObject({ code: 516 });
});

test('https is spoken with a server whose certificate is trusted, and with no other', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-tls-'));
  closing.push(() => rmSync(folder, { recursive: true }));
  const [keyFile, certFile] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'];
  const files = ['-keyout', keyFile, '-out', certFile];
  execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', ...subject, ...files], {
    stdio: 'ignore',
  });
  const cert = readFileSync(certFile, 'utf8');
  const { hostname, port: upstreamPort } = new URL(inject('clickhouseUrl'));
  const server = createTlsServer({ key: readFileSync(keyFile), cert }, (client) => {
    const upstream = connect(Number(upstreamPort), hostname);
    for (const socket of [client, upstream]) socket.on('error', () => undefined);
    client.pipe(upstream).pipe(client);
  });
  server.on('tlsClientError', () => undefined);
  closing.push(() => server.close());
  const url = `https://127.0.0.1:${await listen(server)}`;
  await expect(rowsOf(readerOf(url), request('SELECT 1'))).rejects.toThrow(/self-signed/);
  const trusted = getCACertificates('default');
  closing.push(() => setDefaultCACertificates(trusted));
  setDefaultCACertificates([...trusted, cert]);
  expect(await rowsOf(readerOf(url), request('SELECT 1'))).toEqual([[1]]);
});
