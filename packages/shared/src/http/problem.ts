import { STATUS_CODES } from 'node:http';
import { z } from 'zod';

/** The code of each problem, and its status. Clients depend on the codes: never change one. */
export const PROBLEMS = {
  invalid_request: 400,
  malformed_json: 400,
  unauthorized: 401,
  invalid_api_key: 401,
  missing_scope: 403,
  not_found: 404,
  method_not_allowed: 405,
  not_replayable: 409,
  segment_in_use: 409,
  merge_chain: 409,
  workspace_not_empty: 409,
  body_too_slow: 408,
  position_lost: 410,
  body_too_large: 413,
  unsupported_media_type: 415,
  host_not_allowed: 421,
  rate_limited: 429,
  too_many_listeners: 429,
  internal: 500,
  query_too_expensive: 400,
  invalid_sql: 400,
  sql_not_available: 501,
  stream_not_available: 501,
  webhooks_not_available: 501,
  deletions_not_available: 501,
  example_not_available: 501,
  keys_read_only: 501,
  replay_not_available: 501,
  views_not_available: 501,
  event_log_unavailable: 503,
  store_unavailable: 503,
  overloaded: 503,
  keys_unavailable: 503,
  clock_skewed: 503,
} as const;

export type ProblemCode = keyof typeof PROBLEMS;

/**
 * One error of a request: its path (`events.0.event`), a code, and a message that completes the path to a sentence. `custom`
 * is zod's code for what is checked by a function of ours.
 */
export interface InputError {
  readonly path: string;
  readonly code: string;
  readonly message: string;
}

/** The `Retry-After` of a response while what the service needs is unavailable, in seconds. */
export const RETRY_UNAVAILABLE_SECONDS = 5;

/** The `Retry-After` of a response while the service is busy, or what it needs is for a moment; in seconds. */
export const RETRY_BUSY_SECONDS = 2;

export interface ProblemOptions {
  readonly errors?: readonly InputError[];
  /** Seconds, a whole number, for the `Retry-After` header. */
  readonly retryAfter?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly cause?: unknown;
}

/** An error response. The client reads `detail`, so it names no product, host, SQL or stack. */
export class Problem extends Error {
  override readonly name = 'Problem';
  readonly status: number;
  readonly code: ProblemCode;
  readonly errors: readonly InputError[] | undefined;
  readonly headers: Readonly<Record<string, string>>;

  constructor(code: ProblemCode, detail: string, { errors, retryAfter, headers, cause }: ProblemOptions = {}) {
    super(detail, { cause });
    this.code = code;
    this.status = PROBLEMS[code];
    this.errors = errors;
    this.headers = { ...headers, ...(retryAfter !== undefined && { 'retry-after': String(retryAfter) }) };
  }
}

/** Codes of errors by the reason that is given for them. Clients may read either: never change one. */
const REASONS: Readonly<Record<string, string>> = { custom: 'invalid_value' };

const errorSchema = z.object({
  path: z.string().meta({ description: 'Which part of the request: `events.0.event`, or the name of a parameter.' }),
  reason: z.string().meta({
    description:
      'What kind of error it is, such as `unknown_field`. `invalid_value`: `message` says which values are valid.',
  }),
  code: z.string().meta({
    deprecated: true,
    description: 'The same as `reason`, but `custom` in place of some `invalid_value`.',
  }),
  message: z.string().meta({ description: 'Completes `path` to a sentence.' }),
});

/** The body of every error response (RFC 9457), as OpenAPI shows it. */
export const problemSchema = z
  .object({
    type: z.literal('about:blank'),
    title: z.string(),
    status: z.int().min(400).max(599),
    detail: z.string(),
    message: z.string().meta({ description: 'The same as `detail`: some clients read it.' }),
    code: z.enum(Object.keys(PROBLEMS) as [ProblemCode, ...ProblemCode[]]),
    requestId: z.string(),
    errors: z.array(errorSchema).optional(),
  })
  .meta({ id: 'Problem' });

/** Returns the body of the response. */
export function problemBody(problem: Problem, requestId: string): z.output<typeof problemSchema> {
  return {
    type: 'about:blank',
    title: STATUS_CODES[problem.status] ?? 'Error',
    status: problem.status,
    detail: problem.message,
    message: problem.message,
    code: problem.code,
    requestId,
    ...(problem.errors && { errors: problem.errors.map(errorBody) }),
  };
}

function errorBody({ path, code, message }: InputError): z.output<typeof errorSchema> {
  return { path, reason: REASONS[code] ?? code, code, message };
}

/** The most errors that one response names: a hostile body could otherwise cause a response many times its size. */
export const ERRORS_MAX = 1_000;

/** Returns what a schema makes of the body of a request. @throws {Problem} `invalid_request`, naming every error */
export function parseBody<Output>(schema: z.ZodType<Output>, body: unknown): Output {
  const result = schema.safeParse(body);
  if (!result.success) throw invalidRequest(result.error.issues);
  return result.data;
}

/**
 * Creates the 400 that names every error that zod found. Each unknown field is an error of its own, at its own path.
 *
 * @param count how many errors there are when `issues` holds only some of them
 */
export function invalidRequest(issues: readonly z.core.$ZodIssue[], count = 0): Problem {
  const errors = issues.flatMap((issue): InputError[] =>
    issue.code === 'unrecognized_keys'
      ? issue.keys.map((key) => ({
          path: pathOf([...issue.path, key]),
          code: 'unknown_field',
          message: 'is not known',
        }))
      : [{ path: pathOf(issue.path), code: issue.code, message: issue.message }],
  );
  const total = Math.max(count, errors.length);
  if (total === 1) return new Problem('invalid_request', 'The request has an error.', { errors });
  const some = total > ERRORS_MAX ? `, of which ${ERRORS_MAX} are named` : '';
  const detail = `The request has ${total} errors${some}.`;
  return new Problem('invalid_request', detail, { errors: errors.slice(0, ERRORS_MAX) });
}

/** A name from outside may be as long as a body. */
const NAME_LENGTH_MAX = 100;

function pathOf(path: readonly PropertyKey[]): string {
  return path.map((name) => String(name).slice(0, NAME_LENGTH_MAX)).join('.');
}
