import { readdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { readClickHouse } from '../clickhouse.ts';
import type { Service } from '../service.ts';
import { describeProduct, type Product } from './product.ts';

// What an attack leaves behind when all of its requests are answered.

/** What the id of each hostile request begins with: a number after it says which product it was. */
export const REQUEST_ID_PREFIX = 'hostile.';

/** What Node.js calls work that waits for, or has, a thread of libuv's pool; the threads of a process are four. */
const POOL_TYPES = ['FSReqCallback', 'FSReqPromise', 'GetAddrInfoReqWrap', 'GetNameInfoReqWrap', 'RandomBytesRequest'];

/** What a process holds, by what it is. */
export type Held = Readonly<Record<'pool' | 'sockets' | 'timers', number>>;

/** How many more of each a process may hold than before the first round: pools of connections, with a timer each. */
export const HELD_MORE_MAX: Held = { pool: 0, sockets: 64, timers: 64 };

const WORDS: Readonly<Record<keyof Held, string>> = {
  pool: "requests for libuv's pool",
  sockets: 'open connections',
  timers: 'timers',
};

/** Returns what a service holds now. */
export async function heldBy(service: Pick<Service, 'url'>): Promise<Held> {
  const text = await (await fetch(`${service.url}/metrics`)).text();
  const resources = new Map<string, number>();
  for (const [, type = '', count] of text.matchAll(/^nodejs_active_resources\{.*?type="(\w+)".*\} (\d+)$/gm)) {
    resources.set(type, Number(count));
  }
  const sum = (types: readonly string[]) => types.reduce((total, type) => total + (resources.get(type) ?? 0), 0);
  return { pool: sum(POOL_TYPES), sockets: sum(['TCPSocketWrap', 'TLSWrap']), timers: sum(['Timeout']) };
}

/** What a service holds more than it may. */
export function heldTooMuch(name: string, before: Held, now: Held): readonly string[] {
  return (Object.keys(WORDS) as (keyof Held)[])
    .filter((what) => now[what] > before[what] + HELD_MORE_MAX[what])
    .map((what) => `${name} has ${now[what]} ${WORDS[what]}, and had ${before[what]} before the first round`);
}

/** The doors whose rounds ended with more than any round before, by the service and what it was. */
export class Growth {
  readonly #most = new Map<string, number>();
  readonly #doors = new Map<string, Set<string>>();

  /** After the round of these products. */
  note(service: string, held: Held, products: readonly Product[]): void {
    for (const [what, count] of Object.entries(held)) {
      const name = `${service} ${what}`;
      if (count <= (this.#most.get(name) ?? 0)) continue;
      this.#most.set(name, count);
      const doors = this.#doors.get(name) ?? new Set();
      for (const { door } of products) doors.add(door);
      this.#doors.set(name, doors);
    }
  }

  /** Says in the rounds of which doors a service got more of something. */
  of(service: string): string {
    const found = [...this.#doors]
      .filter(([name]) => name.startsWith(`${service} `))
      .flatMap(([, doors]) => [...doors]);
    return `more than ever before in the rounds of ${[...new Set(found)].join(', ') || 'none'}`;
  }
}

/** The names of lock files beside a keys file; a lock is held for milliseconds. */
export async function locksOf(keysFile: string): Promise<readonly string[]> {
  const names = await readdir(dirname(keysFile));
  return names.filter((name) => name.startsWith(`${basename(keysFile)}.`)).map((name) => join(dirname(keysFile), name));
}

const RUNNING = `SELECT query_id, round(elapsed, 1), substring(query, 1, 200) FROM system.processes
WHERE position(query_id, '${REQUEST_ID_PREFIX}') > 0 FORMAT TSV`;

/** How long a query may run on after its request was answered, in milliseconds: ClickHouse looks for a signal now and then. */
const RUNS_ON_MS_MAX = 5_000;

/** Returns what still runs in ClickHouse of requests that are answered, with the door of each. @param withinMs default 5,000 */
export async function runsOn(
  clickhouseUrl: string,
  products: readonly Product[],
  withinMs = RUNS_ON_MS_MAX,
): Promise<readonly string[]> {
  const until = performance.now() + withinMs;
  for (;;) {
    const lines = (await readClickHouse(clickhouseUrl, RUNNING)).split('\n').filter((line) => line !== '');
    if (lines.length === 0) return [];
    if (performance.now() > until) return lines.map((line) => describeQuery(line, products, withinMs));
    await delay(100);
  }
}

function describeQuery(line: string, products: readonly Product[], withinMs: number): string {
  const [id = '', seconds, query] = line.split('\t');
  const number = Number(id.slice(id.indexOf(REQUEST_ID_PREFIX) + REQUEST_ID_PREFIX.length).split('.')[0]);
  const product = products[number];
  const door = product === undefined ? id : describeProduct(product);
  return `${door}: a query still runs ${withinMs / 1_000} s after the response, for ${seconds} s in all: ${query}`;
}
