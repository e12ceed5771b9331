import { isIPv4, isIPv6 } from 'node:net';
import { authenticate, findKey } from '@sluice/shared/http/authentication';
import { type MemoryBudget, REQUEST_BYTES, type Reservation } from '@sluice/shared/http/memory-budget';
import { Problem, RETRY_BUSY_SECONDS } from '@sluice/shared/http/problem';
import type { RateLimiter } from '@sluice/shared/http/rate-limiter';
import type { ApiKey, KeyRing } from '@sluice/shared/keys/key-ring';
import type { Scope } from '@sluice/shared/keys/keys-file';
import { rowsTooLarge } from '@sluice/submissions/rows/row-size';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { eventLogUnavailable, overloaded } from './problems.ts';

/** The memory of an ordinary request as a multiple of its body: the body itself and its rows. */
const MEMORY_PER_BODY = 2.5;

/**
 * Requests whose key is not known yet hold memory as if they were of one workspace, which no key has. Each network has an
 * account of its own: nobody without a key may keep the others out.
 */
const WITHOUT_KEY = '';

declare module 'fastify' {
  interface FastifyRequest {
    apiKey: ApiKey;
    /** The network that it comes from, on routes whose key may be in the body and was nowhere else. */
    network: string | undefined;
    /** How much of its key's rate the request has used; 0 until it is charged. */
    counted: number;
    /** The memory that the request holds; `undefined` on routes that need no key. */
    reservation: Reservation | undefined;
  }
}

/** The clock of this machine, compared with Kafka's. */
export interface ComparedClock {
  /** Whether they have been compared in the last minutes. Otherwise nothing can be accepted. */
  readonly isCompared: boolean;
  /** Returns why versions from this clock would be wrong; `undefined` when they are right. */
  problem(): string | undefined;
}

export interface AdmissionOptions {
  readonly keys: KeyRing;
  readonly clock: ComparedClock;
  readonly limiter: RateLimiter;
  readonly memory: Pick<MemoryBudget, 'open'>;
  readonly bodyBytesMax: number;
  /** The most that the rows of one request may be, in bytes. */
  readonly rowBytesMax: number;
}

/**
 * Decides whether a request is read at all. The checks, in this order:
 *
 * 1. key: it is known and has the scope;
 * 2. clock: it agrees with Kafka's, because the versions of rows come from it;
 * 3. rate: the key may send one more request;
 * 4. memory: there is room for the announced body and its rows.
 *
 * Afterwards the request reserves memory as it grows: for its body in body-reader.ts, for its rows by `rowMemory`. When
 * the response is sent, or the connection breaks, the memory is released. A response of 503 costs the key no rate.
 */
export class Admission {
  readonly #options: AdmissionOptions;

  constructor(options: AdmissionOptions) {
    this.#options = options;
  }

  /** Adds to the app what admission keeps on each request, and releases it with the response. Call it before the routes. */
  register(app: FastifyInstance): void {
    app.decorateRequest('apiKey');
    app.decorateRequest('network');
    app.decorateRequest('counted', 0);
    app.decorateRequest('reservation');
    app.addHook('onSend', (request, reply, _payload, done) => {
      request.reservation?.release();
      const { statusCode: status } = reply;
      if (status === 503 && request.counted > 0) this.#options.limiter.refund(request.apiKey, request.counted);
      done();
    });
  }

  /**
   * Creates the hook that admits requests before their bodies are read. It throws the problems `unauthorized`,
   * `missing_scope`, `keys_unavailable`, `event_log_unavailable`, `clock_skewed`, `rate_limited` and `overloaded`.
   */
  admit(scope: Scope): (request: FastifyRequest, reply: FastifyReply, done: () => void) => void {
    const { keys } = this.#options;
    return (request, reply, done) => {
      this.#admitKey(request, authenticate(request, keys, scope));
      this.#reserve(request, reply, request.apiKey);
      done();
    };
  }

  /**
   * Creates the hook that admits requests whose API key may be in the body. `tokenOf` returns the key that a request has
   * outside of its body. Without one, the memory is that of the client's network until `admitBodyKey` is called.
   */
  admitCalls(
    tokenOf: (request: FastifyRequest) => string | undefined,
  ): (request: FastifyRequest, reply: FastifyReply, done: () => void) => void {
    return (request, reply, done) => {
      const token = tokenOf(request);
      if (token === undefined) {
        this.#checkClock();
        request.network = networkOf(request.ip);
        this.#reserve(request, reply, { hash: request.network, workspace: WITHOUT_KEY });
      } else {
        this.#admitKey(request, findKey(token, this.#options.keys, 'ingest'));
        this.#reserve(request, reply, request.apiKey);
      }
      done();
    };
  }

  /** Checks a key and counts nothing. Throws `unauthorized`, `missing_scope` and `keys_unavailable`. */
  checkKey(token: string): void {
    findKey(token, this.#options.keys, 'ingest');
  }

  /** Returns the seconds until a key may send another request; 0: now. Throws what {@link checkKey} throws. */
  secondsLeft(token: string): number {
    const { keys, limiter } = this.#options;
    return limiter.secondsLeft(findKey(token, keys, 'ingest'));
  }

  /** Admits a request by the key that its body has. Throws what the hooks throw. */
  admitBodyKey(request: FastifyRequest, token: string): void {
    const { keys, memory } = this.#options;
    this.#admitKey(request, findKey(token, keys, 'ingest'));
    const bytes = request.reservation?.bytes ?? 0;
    request.reservation?.release();
    request.reservation = memory.open(request.apiKey);
    if (!request.reservation.grow(bytes)) throw overloaded();
  }

  /**
   * Returns a function that reserves memory for the rows of a request, piece by piece, as they are created. It throws the
   * problems `overloaded`, and `body_too_large` when they are more than the rows of one request may be.
   *
   * @param leastBytes what the rows will be at least, if that is known
   * @throws {Problem} `body_too_large`
   */
  rowMemory(request: FastifyRequest, leastBytes = 0): (bytes: number) => void {
    const { rowBytesMax } = this.#options;
    if (leastBytes > rowBytesMax) throw rowsTooLarge(rowBytesMax);
    let sum = 0;
    return (bytes) => {
      sum += bytes;
      if (sum > rowBytesMax) throw rowsTooLarge(rowBytesMax);
      if (!request.reservation?.grow(bytes)) throw overloaded();
    };
  }

  /** Charges the key of a request for its events instead of one request. @throws {Problem} `rate_limited` */
  admitEvents(request: FastifyRequest, events: number): void {
    this.#options.limiter.recount(request.apiKey, events);
    request.counted = Math.max(events, 1);
  }

  #admitKey(request: FastifyRequest, key: ApiKey): void {
    request.apiKey = key;
    this.#checkClock();
    this.#options.limiter.admit(key);
    request.counted = 1;
  }

  #checkClock(): void {
    const { clock } = this.#options;
    if (!clock.isCompared) throw eventLogUnavailable();
    if (clock.problem() !== undefined) {
      throw new Problem('clock_skewed', 'The clock of this instance is wrong; send the request again.', {
        retryAfter: RETRY_BUSY_SECONDS,
      });
    }
  }

  #reserve(request: FastifyRequest, reply: FastifyReply, account: Pick<ApiKey, 'hash' | 'workspace'>): void {
    const { memory, bodyBytesMax } = this.#options;
    // Kept with the request even where it is refused: its response releases it.
    const reservation = memory.open(account);
    request.reservation = reservation;
    const announced = Math.min(Number(request.headers['content-length'] ?? 0), bodyBytesMax);
    // Refuses a body that does not fit before it is sent. Its memory is not reserved yet: the body may never come.
    if (!reservation.fits(MEMORY_PER_BODY * announced) || !reservation.grow(REQUEST_BYTES)) throw overloaded();
    // A request whose body breaks off gets no response. One whose body is complete always does.
    reply.raw.once('close', () => {
      if (!request.raw.complete) request.reservation?.release();
    });
  }
}

/** An IPv4 address, also as a socket that takes IPv6 shows it, and with the port that some proxies add. */
const IPV4 = /^(?:::ffff:)?(\d+\.\d+\.\d+\.\d+)(?::\d+)?$/i;

const GROUPS_OF_NETWORK = 3;
const GROUPS_OF_ADDRESS = 8;

/**
 * Returns the network of an address: the /24 of IPv4 and the /48 of IPv6, because whoever has one address there often has
 * all of them. It is no name of a workspace.
 *
 * @param address anything else than an address is of one network, too
 */
export function networkOf(address: string | undefined): string {
  const text = IPV4.exec(address ?? '')?.[1] ?? address ?? '';
  if (isIPv4(text)) return `${text.slice(0, text.lastIndexOf('.'))}.0/24`;
  if (!isIPv6(text)) return 'network unknown';
  const [head = [], tail = []] = text.split('::').map((part) => (part === '' ? [] : part.split(':')));
  const tailGroups = tail.length + (tail.at(-1)?.includes('.') ? 1 : 0);
  const zeros = Math.max(0, GROUPS_OF_ADDRESS - head.length - tailGroups);
  const groups = [...head, ...(text.includes('::') ? Array<string>(zeros).fill('0') : []), ...tail];
  const network = groups.slice(0, GROUPS_OF_NETWORK).map((group) => Number.parseInt(group, 16).toString(16));
  return `${network.join(':')}::/48`;
}
