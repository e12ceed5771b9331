import type { LookupAddress } from 'node:dns';
import { Agent as HttpAgent, type IncomingMessage, request as requestHttp } from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import type { AllowedAddresses } from './allowed-addresses.ts';
import type { ReceiverNames } from './receiver-names.ts';
import { signatures } from './signature.ts';

/** How much of a response is read, in bytes. */
export const RESPONSE_BYTES_MAX = 4_096;

/** How long an idle connection is kept, in milliseconds. Many servers close theirs after 5 s. */
const IDLE_MS = 4_000;

export interface Message {
  readonly id: string;
  /** JSON. */
  readonly body: string;
}

/** What came of an attempt. */
export interface Attempt {
  readonly isDelivered: boolean;
  /** HTTP status of the response; 0 if there was none. */
  readonly status: number;
  readonly durationMs: number;
  /** Why it is not delivered; empty when it is. */
  readonly error: string;
  /** How long the receiver asks to wait, in milliseconds. */
  readonly retryAfterMs?: number | undefined;
}

/** What a receiver has responded. */
interface Answer {
  readonly status: number;
  readonly retryAfterMs: number | undefined;
}

export interface SenderOptions {
  readonly addresses: AllowedAddresses;
  readonly names: Pick<ReceiverNames, 'find'>;
  /** How long an attempt may take, from the look-up of the name to the end of the response, in milliseconds. */
  readonly timeoutMs: number;
}

class AddressRefused extends Error {
  constructor(host: string) {
    super(`${host} is not a public address`);
  }
}

/**
 * Sends messages to receivers. It connects to the very address that was checked: `lookup` returns no other one to the
 * connection. It follows no redirect: that is a response without success.
 */
export class HttpSender {
  readonly #options: SenderOptions;
  readonly #agents: { readonly 'http:': HttpAgent; readonly 'https:': HttpsAgent };

  constructor(options: SenderOptions) {
    this.#options = options;
    const kept = { keepAlive: true, timeout: IDLE_MS, maxFreeSockets: 64 } as const;
    this.#agents = { 'http:': new HttpAgent(kept), 'https:': new HttpsAgent(kept) };
  }

  close(): void {
    for (const agent of Object.values(this.#agents)) agent.destroy();
  }

  /**
   * Sends a message once, signed with each secret.
   *
   * @param signal ends the attempt, which counts as a failure
   */
  async send(address: string, message: Message, secrets: readonly string[], signal: AbortSignal): Promise<Attempt> {
    const begun = performance.now();
    const ended = (status: number, error: string, retryAfterMs?: number): Attempt => ({
      ...{ isDelivered: error === '', status, error, retryAfterMs },
      durationMs: Math.round(performance.now() - begun),
    });
    const timeout = AbortSignal.timeout(this.#options.timeoutMs);
    try {
      const signals = AbortSignal.any([signal, timeout]);
      const { status, retryAfterMs } = await this.#post(new URL(address), message, secrets, signals);
      return ended(status, status >= 200 && status < 300 ? '' : `the receiver answered ${status}`, retryAfterMs);
    } catch (error) {
      if (signal.aborted) return ended(0, 'it was ended before the receiver answered');
      if (timeout.aborted) return ended(0, `the receiver took longer than ${this.#options.timeoutMs} ms`);
      return ended(0, reasonOf(error as NodeJS.ErrnoException).slice(0, 500));
    }
  }

  /** The rest of a long response is not read, and its connection closed. */
  #post(url: URL, { id, body }: Message, secrets: readonly string[], signal: AbortSignal): Promise<Answer> {
    const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
    // Node.js looks up no name that is an address.
    if (isIP(host) !== 0 && !this.#options.addresses.has(host)) throw new AddressRefused(host);
    const timestamp = Math.floor(Date.now() / 1_000);
    const headers = {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      'user-agent': 'Sluice-Webhooks/1.0',
      'webhook-id': id,
      'webhook-timestamp': String(timestamp),
      'webhook-signature': signatures({ id, timestamp, body }, secrets),
    };
    const protocol = url.protocol === 'https:' ? 'https:' : 'http:';
    const request = protocol === 'https:' ? requestHttps : requestHttp;
    return new Promise((resolve, reject) => {
      let isAnswered = false;
      const sent = request(
        url,
        { method: 'POST', headers, agent: this.#agents[protocol], lookup: this.#lookupUntil(signal), signal },
        (response) => {
          isAnswered = true;
          readToEnd(response).then(() => resolve(answerOf(response)), reject);
        },
      );
      sent.on('error', reject);
      // Where the receiver switches protocols, Node.js closes the connection without an error.
      sent.on('close', () => {
        if (!isAnswered) reject(new Error('the connection was closed without a response'));
      });
      sent.end(body);
    });
  }

  /** @param signal ends the look-up with the attempt */
  #lookupUntil(signal: AbortSignal): LookupFunction {
    return (host, options, callback) => {
      this.#allowedOf(host, signal).then(
        ([first, ...others]) => {
          if (options.all) callback(null, [first, ...others]);
          else callback(null, first.address, first.family);
        },
        (error) => callback(error, ''),
      );
    };
  }

  /** @throws {AddressRefused} */
  async #allowedOf(host: string, signal: AbortSignal): Promise<[LookupAddress, ...LookupAddress[]]> {
    const { names, addresses } = this.#options;
    const [first, ...others] = await names.find(host, signal);
    // One that is refused among several is the mark of an attack: then none is used.
    if (!first || ![first, ...others].every(({ address }) => addresses.has(address))) throw new AddressRefused(host);
    return [first, ...others];
  }
}

/** Codes of OpenSSL and Node.js for a certificate that does not pass, such as DEPTH_ZERO_SELF_SIGNED_CERT. */
const CERTIFICATE_CODE = /CERT|UNABLE_TO_VERIFY_LEAF_SIGNATURE/;

function reasonOf({ code = '', message }: NodeJS.ErrnoException): string {
  if (CERTIFICATE_CODE.test(code)) return `the certificate of the receiver is not accepted: ${message}`;
  return message || 'the connection failed';
}

function answerOf({ statusCode: status = 0, headers }: IncomingMessage): Answer {
  return { status, retryAfterMs: status === 429 || status === 503 ? retryAfterOf(headers['retry-after']) : undefined };
}

/** Returns how many milliseconds the header `retry-after` asks to wait: it has seconds or a date (RFC 9110, 10.2.3). */
export function retryAfterOf(header: string | undefined, nowMs = Date.now()): number | undefined {
  if (header === undefined) return undefined;
  if (/^\d{1,9}$/.test(header)) return Number(header) * 1_000;
  const ms = / GMT$/.test(header) ? Date.parse(header) - nowMs : Number.NaN;
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}

async function readToEnd(response: IncomingMessage): Promise<void> {
  let bytes = 0;
  for await (const chunk of response) {
    bytes += (chunk as Buffer).length;
    if (bytes > RESPONSE_BYTES_MAX) return;
  }
}
