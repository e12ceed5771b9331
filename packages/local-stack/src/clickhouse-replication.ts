import { dlopen, getRawPointer } from 'node:ffi';
import { readFileSync } from 'node:fs';
import { LocalStackError } from './errors.ts';

/** Where other replicas fetch parts from this server. */
export interface InterserverAddress {
  readonly host: string;
  readonly port: number;
}

/** A few bytes of the library's code, which are others while a server replicates. */
interface Change {
  readonly what: string;
  readonly at: number;
  /** Hexadecimal: how the code begins there. */
  readonly was: string;
  readonly code: readonly number[];
}

// For chDB 3.4.0 on Linux with x64, whose engine is ClickHouse 26.7.2.1. Symbols are not in the library: the first four were found
// by the text that Context::getInterserverIOAddress throws, the last three by the name "InterserverIOHTTPHandler-factory".
const ADDRESS = 0x1417c9c0;
const SCHEME = 0x1417cac0;
const CREDENTIALS = 0x1417c940;
const CHECK_CREDENTIALS = 0x183d52b2;
const FACTORY_CHOICE = 0x18395d32;
const FACTORY_OF_CLIENTS = 0x18395ffa;
const FACTORY_OF_REPLICAS = 0x18395dbc;
/** Between two functions. */
const ROOM = 0x18395c88;

/** Written by the changed code, and read as empty credentials; it stays where it is as long as the process. */
const cells = Buffer.alloc(4096);
const CREDENTIALS_CELL = 64n;

const PAGE = 4096n;
const READ_EXECUTE = 5;
const READ_WRITE_EXECUTE = 7;

/**
 * Lets the tables of this process's `clickhouse local` replicate. It has all that a server has for that, but never sets the address,
 * the scheme and the credentials for other replicas, and its listeners are for clients only: with this, the HTTP listener of
 * the second `listen_host` is for replicas. Called when the library is loaded, before it runs.
 *
 * @throws LocalStackError REPLICATION_UNKNOWN when the library is another one
 */
export function allowReplication(address: InterserverAddress): void {
  const base = libraryBase();
  const { functions: c } = dlopen(null, {
    mprotect: { return: 'i32', arguments: ['u64', 'u64', 'i32'] },
    memcpy: { return: 'pointer', arguments: ['pointer', 'pointer', 'u64'] },
  });
  for (const { what, at, was } of changes(address)) {
    const target = base + BigInt(at);
    const found = Buffer.alloc(was.length / 2);
    c.memcpy(getRawPointer(found), target, BigInt(found.length));
    if (found.toString('hex') !== was)
      throw new LocalStackError(
        'REPLICATION_UNKNOWN',
        `Tables cannot replicate: ${what} is not where it is in chDB 3.4.0 for Linux on x64. See packages/local-stack/src/clickhouse-replication.ts.`,
      );
  }
  for (const { at, code } of changes(address)) {
    const target = base + BigInt(at);
    const page = target - (target % PAGE);
    const bytes = Buffer.from(code);
    if (c.mprotect(page, 2n * PAGE, READ_WRITE_EXECUTE) !== 0) throw new Error('mprotect failed');
    c.memcpy(target, getRawPointer(bytes), BigInt(bytes.length));
    if (c.mprotect(page, 2n * PAGE, READ_EXECUTE) !== 0) throw new Error('mprotect failed');
  }
}

function libraryBase(): bigint {
  const maps = process.platform === 'linux' ? readFileSync('/proc/self/maps', 'utf8') : '';
  const first = /^([0-9a-f]+)-\S+ \S+ 0+ .*libchdb\.so$/m.exec(maps)?.[1];
  if (first !== undefined) return BigInt(`0x${first}`);
  throw new LocalStackError('REPLICATION_UNKNOWN', 'Tables can replicate on Linux with x64 only.');
}

function changes({ host, port }: InterserverAddress): Change[] {
  const cell = BigInt(getRawPointer(cells));
  const counter = [0x48, 0xb8, ...uint64(cell), 0xf0, 0x48, 0xff, 0x00, 0x48, 0x83, 0x38, 0x02];
  // push rax; mov rax, counter; lock inc [rax]; cmp [rax], 2; pop rax; je FACTORY_OF_REPLICAS; jmp FACTORY_OF_CLIENTS
  const choice = [0x50, ...counter, 0x58];
  choice.push(0x0f, 0x84, ...distance(ROOM + choice.length + 6, FACTORY_OF_REPLICAS));
  choice.push(0xe9, ...distance(ROOM + choice.length + 5, FACTORY_OF_CLIENTS));
  return [
    {
      what: 'the address for other replicas',
      at: ADDRESS,
      was: '41565348 83ec48'.replaceAll(' ', ''),
      // mov word [rdi + 24], port
      code: [...shortString(host), 0x66, 0xc7, 0x47, 0x18, port & 0xff, port >> 8, ...RETURN_ARGUMENT],
    },
    {
      what: 'the scheme for other replicas',
      at: SCHEME,
      was: '488b0680b88701000000',
      code: [...shortString('http'), ...RETURN_ARGUMENT],
    },
    {
      what: 'the credentials for other replicas',
      at: CREDENTIALS,
      was: '41574156534c8b3f',
      // mov rax, cell; xor edx, edx; ret
      code: [0x48, 0xb8, ...uint64(cell + CREDENTIALS_CELL), 0x31, 0xd2, 0xc3],
    },
    { what: 'the check of credentials', at: CHECK_CREDENTIALS, was: '0f840d010000', code: [0x90, 0xe9] },
    { what: 'room for code', at: ROOM, was: 'cc'.repeat(choice.length), code: choice },
    {
      what: 'the choice of a handler',
      at: FACTORY_CHOICE,
      was: '0f84c2020000',
      code: [0x0f, 0x84, ...distance(FACTORY_CHOICE + 6, ROOM)],
    },
  ];
}

/** mov rax, rdi; ret */
const RETURN_ARGUMENT = [0x48, 0x89, 0xf8, 0xc3];
const STRING_BYTES = 24;

/** Code that writes a std::string without memory of its own, whose last byte is its length, to where rdi points. */
function shortString(text: string): number[] {
  const bytes = Buffer.alloc(STRING_BYTES);
  bytes.write(text, 'latin1');
  bytes.writeUInt8(text.length, STRING_BYTES - 1);
  // mov rax, eight bytes; mov [rdi + offset], rax
  return [0, 8, 16].flatMap((offset) => [0x48, 0xb8, ...bytes.subarray(offset, offset + 8), 0x48, 0x89, 0x47, offset]);
}

function uint64(number: bigint): number[] {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(number);
  return [...bytes];
}

function distance(from: number, to: number): number[] {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32LE(to - from);
  return [...bytes];
}
