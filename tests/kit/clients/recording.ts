import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, request as sendRequest } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import { type ListeningServer, listening } from '../http-server.ts';

const FOLDER = join(import.meta.dirname, 'recorded');

/** The address of ingest-api in what is recorded. */
const HOST = 'localhost:4000';

const END_OF_CHUNKS = '\r\n0\r\n\r\n';

/** A proxy in front of ingest-api that keeps each request. */
export interface Recorder extends ListeningServer {
  /** Writes the requests into the folder of the client, in the place of those that were there. */
  save(name: string): Promise<void>;
}

export async function startRecorder(targetUrl: string): Promise<Recorder> {
  const requests: Buffer[] = [];
  const target = new URL(targetUrl);
  const server = createServer(async (incoming, outgoing) => {
    const body = await buffer(incoming);
    requests.push(requestBytes(incoming, body));
    const { method, url, headers } = incoming;
    const forwarded = sendRequest(
      { host: target.hostname, port: target.port, method, path: url, headers },
      (response) => {
        outgoing.writeHead(response.statusCode ?? 0, response.rawHeaders);
        response.pipe(outgoing);
      },
    );
    forwarded.on('error', () => outgoing.destroy());
    forwarded.end(body);
  });
  return {
    ...(await listening(server)),
    async save(name) {
      const folder = join(FOLDER, name);
      await rm(folder, { recursive: true, force: true });
      await mkdir(folder, { recursive: true });
      for (const [index, bytes] of requests.entries()) {
        await writeFile(join(folder, `${String(index + 1).padStart(2, '0')}.http`), bytes);
      }
    },
  };
}

/**
 * Returns a request as it was on the wire, with another host, and one connection for it alone. A body that came in chunks is
 * one chunk.
 */
function requestBytes({ method, url, rawHeaders }: IncomingMessage, body: Buffer): Buffer {
  const lines = [`${method} ${url} HTTP/1.1`];
  let chunked = false;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const [name = '', value = ''] = rawHeaders.slice(index, index + 2);
    const lower = name.toLowerCase();
    if (lower === 'transfer-encoding') chunked = true;
    lines.push(`${name}: ${lower === 'host' ? HOST : value}`);
  }
  const head = Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
  if (!chunked) return Buffer.concat([head, body]);
  return Buffer.concat([head, Buffer.from(`${body.length.toString(16)}\r\n`), body, Buffer.from(END_OF_CHUNKS)]);
}

/** Returns the recorded requests of a client in their order, byte for byte. */
export async function readRecording(name: string): Promise<Buffer[]> {
  const folder = join(FOLDER, name);
  const files = (await readdir(folder)).sort();
  return await Promise.all(files.map((file) => readFile(join(folder, file))));
}

/** Returns the calls in the bodies of recorded requests. */
export function callsIn<Call>(requests: readonly Buffer[]): Call[] {
  return requests.flatMap((bytes) => {
    const body = bodyOf(bytes);
    if (body.length === 0) return [];
    const json = JSON.parse((body[0] === 0x1f ? gunzipSync(body) : body).toString());
    return (json.batch ?? [json].flat()) as Call[];
  });
}

/** Returns the body of a recorded request. */
function bodyOf(bytes: Buffer): Buffer {
  const end = bytes.indexOf('\r\n\r\n');
  const body = bytes.subarray(end + 4);
  if (!/\r\ntransfer-encoding: /i.test(bytes.toString('latin1', 0, end))) return body;
  return body.subarray(body.indexOf('\r\n') + 2, -END_OF_CHUNKS.length);
}

export interface RawResponse {
  readonly status: number;
  /** Names in small letters. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Sends bytes on a connection of their own, and returns the response. */
export async function sendBytes(url: string, bytes: Buffer): Promise<RawResponse> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  const { promise, resolve, reject } = Promise.withResolvers<RawResponse>();
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    const response = parseResponse(Buffer.concat(chunks));
    if (response) resolve(response);
  });
  socket.on('error', reject);
  socket.on('close', () => reject(new Error(`The connection was closed after: ${Buffer.concat(chunks)}`)));
  socket.write(bytes);
  return await promise.finally(() => socket.destroy());
}

/** Returns nothing as long as the response is not complete. */
function parseResponse(bytes: Buffer): RawResponse | undefined {
  const end = bytes.indexOf('\r\n\r\n');
  if (end === -1) return undefined;
  const [start = '', ...lines] = bytes.toString('latin1', 0, end).split('\r\n');
  const headers = Object.fromEntries(
    lines.map((line) => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
    }),
  );
  const body = bytes.subarray(end + 4);
  if (body.length < Number(headers['content-length'] ?? 0)) return undefined;
  return { status: Number(start.split(' ')[1]), headers, body: body.toString() };
}
