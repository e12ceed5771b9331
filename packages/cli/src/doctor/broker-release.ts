import { once } from 'node:events';
import type { Socket } from 'node:net';
import { createLogger } from '@sluice/shared/base/log';
import type { KafkaConfig } from '@sluice/shared/config';
import { openConnection } from '@sluice/shared/kafka/client';
import { type Finding, note, ok } from './check.ts';

/** The newest `metadata.version` that each release of Apache Kafka knows, the oldest release first. */
const RELEASES: readonly (readonly [release: string, level: number])[] = [
  ['3.3', 7],
  ['3.4', 8],
  ['3.5', 11],
  ['3.6', 14],
  ['3.7', 19],
  ['3.8', 20],
  ['3.9', 21],
  ['4.0', 25],
  ['4.1', 27],
  ['4.2', 29],
  ['4.3', 30],
];

/** The releases that tests use. */
export const RELEASES_TESTED = ['3.9', '4.3'] as const;

/** How a release compares with those that tests use. */
type ReleaseAge = 'older' | 'tested' | 'newer';

/** Asks each broker which release it is. */
export async function checkReleases(
  config: KafkaConfig,
  brokers: readonly { readonly host: string; readonly port: number }[],
  signal: AbortSignal,
): Promise<Finding> {
  const logger = createLogger('sluice-doctor', 'silent');
  const levels = await Promise.all(
    brokers.map(async ({ host, port }) => {
      const level = readMetadataLevel(openConnection(config, host, port, logger), signal);
      // Others may end the connection of a request that they do not know.
      return await level.catch(() => undefined);
    }),
  );
  const known = levels.filter((level) => level !== undefined).map(releaseOf);
  const releases = [...new Set(known.map(({ release }) => release))].join(', ');
  const tested = `tests use Apache Kafka ${RELEASES_TESTED.join(' and ')}`;
  const page = 'docs/operate/engines.md says what is known of others.';
  if (known.length < brokers.length)
    return note(`the brokers do not say that they are Apache Kafka 3.3 or newer; ${tested}`, page);
  if (new Set(levels).size > 1)
    return note(`the brokers are of several releases: ${releases}`, 'Bring an upgrade that was begun to its end.');
  const isOlder = known.some(({ age }) => age === 'older');
  return isOlder
    ? note(`Apache Kafka ${releases}, older than what is tested; ${tested}`, page)
    : ok(`Apache Kafka ${releases}; ${tested}`);
}

/** Returns the release of Apache Kafka that knows this `metadata.version`, and how it compares with those that tests use. */
export function releaseOf(level: number): { readonly release: string; readonly age: ReleaseAge } {
  const levelOf = (wanted: string) => RELEASES.find(([release]) => release === wanted)?.[1] ?? 0;
  const [oldest, newest] = RELEASES_TESTED;
  if (level > levelOf(newest)) return { release: `newer than ${newest}`, age: 'newer' };
  const [release] = RELEASES.find(([, last]) => level <= last) ?? RELEASES[0] ?? [''];
  return { release, age: level < levelOf(oldest) ? 'older' : 'tested' };
}

const API_VERSIONS = 18;
/** The first version of the request whose response has the features of the broker. */
const VERSION = 3;
/** The error of a broker that knows older versions only, and answers in the oldest. */
const UNSUPPORTED_VERSION = 35;
const SUPPORTED_FEATURES = 0;

/**
 * Asks a broker which `metadata.version` it knows at most, which tells its release. No login is needed. `undefined`: the broker
 * says none, as Apache Kafka before 3.3 and other implementations.
 *
 * @throws {Error} when the connection ends before the response
 */
async function readMetadataLevel(socket: Socket, signal: AbortSignal): Promise<number | undefined> {
  const end = () => void socket.destroy(signal.reason);
  signal.addEventListener('abort', end, { once: true });
  try {
    socket.write(requestFrame());
    return metadataLevel(await readFrame(socket));
  } finally {
    signal.removeEventListener('abort', end);
    socket.destroy();
  }
}

function requestFrame(): Buffer {
  const name = Buffer.from('sluice-doctor');
  const head = Buffer.alloc(14);
  head.writeInt16BE(API_VERSIONS, 4);
  head.writeInt16BE(VERSION, 6);
  head.writeInt16BE(name.length, 12);
  // No tagged fields; name and version of the client, whose lengths are one more than they are; no tagged fields.
  const body = [Buffer.from([0, name.length + 1]), name, Buffer.from([2]), Buffer.from('1'), Buffer.from([0])];
  const frame = Buffer.concat([head, name, ...body]);
  frame.writeInt32BE(frame.length - 4, 0);
  return frame;
}

async function readFrame(socket: Socket): Promise<Buffer> {
  let read = Buffer.alloc(0);
  const { promise: failed, reject } = Promise.withResolvers<never>();
  socket.on('error', reject).on('close', () => reject(new Error('the connection was closed')));
  failed.catch(() => undefined);
  while (read.length < 4 || read.length < 4 + read.readInt32BE(0)) {
    const [chunk] = (await Promise.race([once(socket, 'data'), failed])) as [Buffer];
    read = Buffer.concat([read, chunk]);
  }
  return read.subarray(4);
}

function metadataLevel(response: Buffer): number | undefined {
  const reader = new FieldReader(response.subarray(4));
  if (reader.int16() === UNSUPPORTED_VERSION) return undefined;
  for (let keys = reader.length(); keys > 0; keys -= 1) {
    reader.skip(6);
    reader.skipTags();
  }
  reader.skip(4);
  for (let tags = reader.varint(); tags > 0; tags -= 1) {
    const tag = reader.varint();
    const size = reader.varint();
    if (tag !== SUPPORTED_FEATURES) {
      reader.skip(size);
      continue;
    }
    for (let features = reader.length(); features > 0; features -= 1) {
      const name = reader.text();
      reader.skip(2);
      const level = reader.int16();
      reader.skipTags();
      if (name === 'metadata.version') return level;
    }
  }
  return undefined;
}

/** Reads the fields of a response in their order, in the compact forms of newer versions. */
class FieldReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  skip(bytes: number): void {
    this.#at += bytes;
  }

  int16(): number {
    this.#at += 2;
    return this.#bytes.readInt16BE(this.#at - 2);
  }

  varint(): number {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = this.#bytes.readUInt8(this.#at);
      this.#at += 1;
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  }

  /** That of an array or a text. */
  length(): number {
    return this.varint() - 1;
  }

  text(): string {
    const length = this.length();
    this.#at += length;
    return this.#bytes.toString('utf8', this.#at - length, this.#at);
  }

  skipTags(): void {
    for (let tags = this.varint(); tags > 0; tags -= 1) {
      this.varint();
      this.skip(this.varint());
    }
  }
}
