import kafkajs, { type Mechanism } from 'kafkajs';
import type { Logger } from '../base/log.ts';
import { unlessAborted } from '../base/unless-aborted.ts';
import type { KafkaConfig } from '../config/config.ts';

// Logins by SASL's OAUTHBEARER: a server of tokens gives this client one for its secret, or AWS for the role of the machine, and
// Kafka checks it. kafkajs has such a login, but takes what Kafka refuses for a success: it does not read the response.

/** A token, and for how long it is valid from now, in milliseconds. 0: it says nothing of it. */
export interface BearerToken {
  readonly value: string;
  readonly lifetimeMs: number;
}

/** How long to wait for a token, in milliseconds. kafkajs waits ten seconds for the response to a request. */
const TOKEN_MS_MAX = 5_000;

/**
 * A token is not used for the last of its time, in milliseconds: kafkajs logs in again ten seconds before the login ends, and Kafka
 * takes two logins of a connection within a second for an error.
 */
const LAST_MS = 20_000;

/** What a server of tokens is asked with. */
type TokenConfig = Pick<
  KafkaConfig,
  'KAFKA_SASL_USERNAME' | 'KAFKA_SASL_PASSWORD' | 'KAFKA_SASL_TOKEN_URL' | 'KAFKA_SASL_SCOPE'
>;

/** Why there is no token. Its message names what to check, and has no secret. */
export class TokenError extends Error {
  override readonly name = 'TokenError';
}

/** Keeps a token until half of its time has passed, so that one that cannot be renewed at once is of use for a while. */
export class BearerTokens {
  readonly #request: () => Promise<BearerToken>;
  readonly #logger: Pick<Logger, 'warn'>;
  readonly #nowMs: () => number;
  #kept: { readonly value: string; readonly renewAtMs: number; readonly usableUntilMs: number } | undefined;
  #pending: Promise<string> | undefined;

  /** @param nowMs the time in milliseconds, by a clock that is never set. Default: that of the system */
  constructor(
    request: () => Promise<BearerToken>,
    logger: Pick<Logger, 'warn'>,
    nowMs: () => number = () => performance.now(),
  ) {
    this.#request = request;
    this.#logger = logger;
    this.#nowMs = nowMs;
  }

  /**
   * Returns a token that is valid.
   *
   * @throws {TokenError} when there is none
   */
  async current(): Promise<string> {
    const kept = this.#kept;
    if (kept && this.#nowMs() < kept.renewAtMs) return kept.value;
    this.#pending ??= this.#renew().finally(() => {
      this.#pending = undefined;
    });
    try {
      return await this.#pending;
    } catch (error) {
      if (!kept || this.#nowMs() >= kept.usableUntilMs) throw error;
      this.#logger.warn(
        { reason: (error as Error).message },
        'the token of Kafka cannot be renewed yet; the last one is still valid',
      );
      return kept.value;
    }
  }

  /** Forgets a token that Kafka has refused. */
  forget(value: string): void {
    if (this.#kept?.value === value) this.#kept = undefined;
  }

  async #renew(): Promise<string> {
    const { value, lifetimeMs } = await this.#request();
    const nowMs = this.#nowMs();
    const usableUntilMs = nowMs + lifetimeMs - LAST_MS;
    this.#kept = { value, renewAtMs: Math.min(nowMs + lifetimeMs / 2, usableUntilMs), usableUntilMs };
    return value;
  }
}

/** Returns how kafkajs logs in by tokens. */
export function bearerLogin(config: KafkaConfig, logger: Logger): Mechanism {
  const isAws = config.KAFKA_SASL_MECHANISM === 'aws-msk-iam';
  const request = isAws ? () => tokenOfAws(config.AWS_REGION ?? '') : () => tokenOfServer(config);
  const tokens = new BearerTokens(request, logger);
  return {
    mechanism: 'oauthbearer',
    authenticationProvider: ({ saslAuthenticate }) => ({
      async authenticate() {
        const token = await tokens.current();
        const send = async (message: string) =>
          (await saslAuthenticate({ request: requestOf(message), response: RESPONSE })) || undefined;
        const refusal = await refusalOf(send, firstMessage(token, config.KAFKA_SASL_EXTENSIONS ?? {}));
        if (refusal === undefined) return;
        tokens.forget(token);
        throw new kafkajs.KafkaJSNonRetriableError(`Kafka refuses the token: ${refusal}`);
      },
    }),
  };
}

/** Returns why Kafka refuses a login; `undefined` when it does not. */
async function refusalOf(
  send: (message: string) => Promise<string | undefined>,
  first: string,
): Promise<string | undefined> {
  try {
    const refusal = await send(first);
    if (refusal === undefined) return undefined;
    // Kafka has said why. It refuses after a message that only ends the exchange.
    await send(SEPARATOR);
    return refusal;
  } catch (error) {
    if ((error as Error).name === 'KafkaJSProtocolError') return (error as Error).message;
    throw error;
  }
}

const SEPARATOR = '\u0001';

/** The first message of RFC 7628. */
function firstMessage(token: string, extensions: Readonly<Record<string, string>>): string {
  const pairs = Object.entries({ ...extensions, auth: `Bearer ${token}` });
  return ['n,,', ...pairs.map((pair) => pair.join('=')), '', ''].join(SEPARATOR);
}

/** A message in the form that kafkajs wants: its length, then its bytes. */
function requestOf(message: string) {
  const bytes = Buffer.from(message);
  const length = Buffer.alloc(4);
  length.writeInt32BE(bytes.length);
  return { encode: () => Buffer.concat([length, bytes]) };
}

/** The response has the same form; it is empty when the token is accepted. */
const RESPONSE = {
  decode: (data: Buffer) => data.subarray(4),
  parse: (data: Buffer) => data.toString(),
};

/**
 * Returns a token of the server of tokens.
 *
 * @param waitMs how long to wait for it, in milliseconds
 * @throws {TokenError} when there is none
 */
export async function tokenOfServer(config: TokenConfig, waitMs = TOKEN_MS_MAX): Promise<BearerToken> {
  const { KAFKA_SASL_USERNAME: id = '', KAFKA_SASL_PASSWORD: secret = '', KAFKA_SASL_SCOPE: scope } = config;
  const form = (text: string) => new URLSearchParams({ '': text }).toString().slice(1);
  const [status, text] = await responseOf(config.KAFKA_SASL_TOKEN_URL ?? '', {
    method: 'POST',
    redirect: 'error',
    signal: AbortSignal.timeout(waitMs),
    headers: {
      accept: 'application/json',
      authorization: `Basic ${Buffer.from(`${form(id)}:${form(secret)}`).toString('base64')}`,
    },
    body: new URLSearchParams({ grant_type: 'client_credentials', ...(scope !== undefined && { scope }) }),
  });
  const { access_token: value, expires_in: seconds, error } = objectIn(text);
  if (status === 400 || status === 401 || status === 403) {
    // The codes of RFC 6749. Another text may be anything, and is not shown.
    const code = typeof error === 'string' && /^[a-z_]{1,40}$/.test(error) ? ` ${error}` : '';
    throw new TokenError(`the token server refuses the client (${status}${code})`);
  }
  if (status !== 200 || typeof value !== 'string' || value === '') {
    throw new TokenError(`the token server gives no token (${status}${status === 200 ? ' without access_token' : ''})`);
  }
  return { value, lifetimeMs: Number(seconds ?? 0) * 1_000 || 0 };
}

async function responseOf(url: string, init: RequestInit): Promise<readonly [status: number, text: string]> {
  try {
    const response = await fetch(url, init);
    return [response.status, await response.text()];
  } catch (error) {
    const { message, cause } = error as Error & { cause?: { readonly code?: string; readonly message?: string } };
    throw new TokenError(`the token server cannot be reached (${cause?.code ?? cause?.message ?? message})`);
  }
}

function objectIn(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

/** Returns a token of the role of this machine. @throws {TokenError} when AWS gives no credentials */
export async function tokenOfAws(region: string): Promise<BearerToken> {
  // It loads a part of AWS's SDK, which nobody else needs.
  const { generateAuthToken } = await import('aws-msk-iam-sasl-signer-js');
  try {
    const { token, expiryTime } = await unlessAborted(AbortSignal.timeout(TOKEN_MS_MAX), generateAuthToken({ region }));
    return { value: token, lifetimeMs: expiryTime - Date.now() };
  } catch (error) {
    throw new TokenError(`AWS gives no credentials (${(error as Error).name})`);
  }
}
