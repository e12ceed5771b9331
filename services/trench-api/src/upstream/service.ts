import { unauthorized } from '@sluice/shared/http/authentication';
import { PROBLEMS, Problem, type ProblemCode, RETRY_UNAVAILABLE_SECONDS } from '@sluice/shared/http/problem';
import { parseExactJson } from '@sluice/shared/text/json';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { reserveResponse } from '../http/held-requests.ts';
import { type JsonList, type JsonMembers, readJsonList } from './json-list.ts';

/** How long a service may take to say whether it is ready, in milliseconds. */
const READY_TIMEOUT_MS = 2_000;

const inputError = z.object({ path: z.string(), code: z.string(), message: z.string() });

const problem = z.object({
  code: z.enum(Object.keys(PROBLEMS) as [ProblemCode, ...ProblemCode[]]),
  detail: z.string(),
  errors: z.array(inputError).optional(),
});

/** Problems that a service has only with a request that is not as this service should send it. */
const OWN_FAULTS: readonly ProblemCode[] = [
  'not_found',
  'method_not_allowed',
  'unsupported_media_type',
  'host_not_allowed',
  'malformed_json',
  'internal',
];

export interface ServiceOptions {
  readonly name: string;
  /** The address of the service, or of what distributes requests between several. */
  readonly url: string;
  /** The code of the problem when it cannot be reached. */
  readonly unavailable: ProblemCode;
  /** How long a request may take, with its response, in milliseconds. */
  readonly timeoutMs: number;
  /** The largest response, in bytes. */
  readonly bytesMax: number;
}

export interface ServiceRequest {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** With the query. */
  readonly path: string;
  /** Default: that of the request. */
  readonly key?: string;
  /** JSON text. */
  readonly body?: string;
  /** The request that needs it: its id and its trace go on, and it holds the memory. */
  readonly of: FastifyRequest;
  /** Whether `404` of the service is one of the client's request. Default: it is a fault of this service. */
  readonly mayBeMissing?: boolean;
  /** Ends the request. */
  readonly signal?: AbortSignal;
}

/** Headers of a request that the services get as they came. */
const TRACE_HEADERS = ['traceparent', 'tracestate'] as const;

/** ingest-api or query-api, over HTTP. */
export class Service {
  readonly #options: ServiceOptions;

  constructor(options: ServiceOptions) {
    this.#options = options;
  }

  /**
   * Returns the JSON of the response, with all digits of its numbers; undefined where it has none.
   *
   * @throws {Problem} that of the service; that it cannot be reached or is too slow; `query_too_expensive` when the response
   * is too large
   */
  async send(request: ServiceRequest): Promise<unknown> {
    return await this.#request(request, async (bytes) => jsonOf(bytes));
  }

  /** Returns a response with a list, as {@link readJsonList} does. Throws as {@link send} does. */
  async list(request: ServiceRequest, name: string, convert: (item: JsonMembers) => string): Promise<JsonList> {
    return await this.#request(request, (bytes) => readJsonList(bytes, name, convert));
  }

  async #request<Result>(
    { method, path, of, key = of.key, body, mayBeMissing = false, signal }: ServiceRequest,
    read: (bytes: Buffer) => Promise<Result>,
  ): Promise<Result> {
    const headers: Record<string, string> = {
      authorization: `Bearer ${key}`,
      'x-request-id': of.id,
      // The services are near: to compress would cost more than it saves.
      'accept-encoding': 'identity',
    };
    for (const name of TRACE_HEADERS) {
      const value = of.headers[name];
      if (typeof value === 'string') headers[name] = value;
    }
    if (body !== undefined) headers['content-type'] = 'application/json';
    const timeout = AbortSignal.timeout(this.#options.timeoutMs);
    const { unavailable } = this.#options;
    try {
      const response = await fetch(new URL(path, this.#options.url), {
        ...{ method, headers, redirect: 'error' },
        ...(body !== undefined && { body }),
        signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
      });
      const bytes = await this.#bytesOf(response, of);
      if (!response.ok) throw problemOf(response, jsonOf(bytes), { unavailable, mayBeMissing });
      return await read(bytes);
    } catch (cause) {
      if (cause instanceof Problem) throw cause;
      throw this.#unreachable(cause);
    }
  }

  /** Returns why the service cannot do its work; empty when it can. */
  async missing(): Promise<readonly string[]> {
    const { name, url } = this.#options;
    try {
      const response = await fetch(new URL('/readyz', url), { signal: AbortSignal.timeout(READY_TIMEOUT_MS) });
      await response.body?.cancel();
      return response.ok ? [] : [`${name} is not ready`];
    } catch {
      return [`${name} cannot be reached`];
    }
  }

  async #bytesOf(response: Response, request: FastifyRequest): Promise<Buffer> {
    const { bytesMax } = this.#options;
    const chunks: Uint8Array[] = [];
    let bytes = 0;
    for await (const chunk of response.body ?? []) {
      bytes += chunk.length;
      if (bytes > bytesMax) {
        throw new Problem(
          'query_too_expensive',
          `The response would be larger than ${bytesMax} bytes; ask for fewer records.`,
        );
      }
      reserveResponse(request, chunk.length);
      chunks.push(chunk);
    }
    return Buffer.concat(chunks);
  }

  #unreachable(cause: unknown): Problem {
    const { name, unavailable } = this.#options;
    const reason = new Error(`${name} cannot be reached: ${reasonOf(cause)}`, { cause });
    return new Problem(unavailable, 'The request cannot be served now; send it again.', {
      retryAfter: RETRY_UNAVAILABLE_SECONDS,
      cause: reason,
    });
  }
}

function jsonOf(bytes: Buffer): unknown {
  return bytes.length === 0 ? undefined : parseExactJson(bytes.toString());
}

/** `fetch` says why it failed in the cause of its error. */
function reasonOf(error: unknown): string {
  const { message, cause } = error as Error;
  return cause instanceof Error ? `${message} (${cause.message})` : message;
}

/**
 * Returns the problem of a response as the client gets it. A key without the scope gets `401`: in Trench it is a key of the
 * other kind.
 *
 * @param unavailable the code where the response has none of the service
 * @param mayBeMissing whether `not_found` is for the client
 */
function problemOf(
  response: Response,
  content: unknown,
  { unavailable, mayBeMissing }: { readonly unavailable: ProblemCode; readonly mayBeMissing: boolean },
): Problem {
  const { success, data } = problem.safeParse(content);
  if (!success)
    return new Problem(unavailable, 'The request cannot be served now; send it again.', {
      retryAfter: RETRY_UNAVAILABLE_SECONDS,
    });
  const { code, detail, errors } = data;
  if (code === 'unauthorized' || code === 'missing_scope') return unauthorized(detail);
  if (OWN_FAULTS.includes(code) && !(code === 'not_found' && mayBeMissing)) {
    const cause = new Error(`${response.url.split('?', 1)[0]} responded ${code}: ${detail}`);
    return new Problem('internal', 'The service failed; its log has the cause under this request id.', { cause });
  }
  const retryAfter = Number(response.headers.get('retry-after') ?? Number.NaN);
  return new Problem(code, detail, {
    ...(errors && { errors }),
    ...(Number.isInteger(retryAfter) && { retryAfter }),
  });
}
