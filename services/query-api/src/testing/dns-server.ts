import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { isIPv4 } from 'node:net';

/** What a name has: addresses, none at all, or an answer of the server that says nothing; undefined: there is no answer. */
export type DnsAnswer = readonly string[] | 'unknown' | 'failed' | undefined;

const HEADER_BYTES = 12;
const RESPONSE = 0x8180;
const CODES = { failed: 2, unknown: 3 } as const;
const TYPES = { 1: 'A', 28: 'AAAA' } as const;

/** A DNS server on loopback, which speaks UDP. */
export class DnsServer implements AsyncDisposable {
  /** The names of all questions, in their order. */
  readonly asked: string[] = [];
  readonly #socket: Socket;

  private constructor(socket: Socket, answer: (name: string) => DnsAnswer) {
    this.#socket = socket;
    socket.on('message', (question, { port, address }) => {
      const { name, type, end } = questionOf(question);
      this.asked.push(name);
      const known = answer(name);
      if (known !== undefined) socket.send(responseTo(question.subarray(0, end), type, known), port, address);
    });
  }

  /** @param answer to questions about a name; default: it never answers */
  static async start(answer: (name: string) => DnsAnswer = () => undefined): Promise<DnsServer> {
    const socket = createSocket('udp4');
    socket.bind(0, '127.0.0.1');
    await once(socket, 'listening');
    return new DnsServer(socket, answer);
  }

  /** As resolvers name it. */
  get address(): string {
    return `127.0.0.1:${this.#socket.address().port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.close();
    await once(this.#socket, 'close');
  }
}

function questionOf(message: Buffer) {
  const labels: string[] = [];
  let at = HEADER_BYTES;
  for (let length = message.readUInt8(at); length > 0; length = message.readUInt8(at)) {
    labels.push(message.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  const type = TYPES[message.readUInt16BE(at + 1) as keyof typeof TYPES];
  return { name: labels.join('.'), type, end: at + 5 };
}

function responseTo(question: Buffer, type: 'A' | 'AAAA', answer: Exclude<DnsAnswer, undefined>): Buffer {
  const all = typeof answer === 'string' ? [] : answer;
  const addresses = all.filter((address) => isIPv4(address) === (type === 'A'));
  const head = Buffer.from(question);
  head.writeUInt16BE(RESPONSE | (typeof answer === 'string' ? CODES[answer] : 0), 2);
  head.writeUInt16BE(addresses.length, 6);
  // What else the question had is not repeated.
  head.writeUInt16BE(0, 10);
  return Buffer.concat([head, ...addresses.map((address) => recordOf(address))]);
}

function recordOf(address: string): Buffer {
  const data = isIPv4(address) ? Buffer.from(address.split('.').map(Number)) : bytesOfIpv6(address);
  const head = Buffer.alloc(12);
  // The name is that of the question.
  head.writeUInt16BE(0xc000 | HEADER_BYTES, 0);
  head.writeUInt16BE(data.length === 4 ? 1 : 28, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(data.length, 10);
  return Buffer.concat([head, data]);
}

/** Of an address with `::`. */
function bytesOfIpv6(address: string): Buffer {
  const [before = [], after = []] = address.split('::').map((part) => part.split(':').filter((group) => group !== ''));
  const groups = [...before, ...Array(8 - before.length - after.length).fill('0'), ...after];
  return Buffer.from(groups.flatMap((group) => [Number.parseInt(group, 16) >> 8, Number.parseInt(group, 16) & 255]));
}
