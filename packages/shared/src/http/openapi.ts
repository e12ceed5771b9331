import { STATUS_CODES } from 'node:http';
import { z } from 'zod';
import {
  createDocument,
  type ZodOpenApiOperationObject,
  type ZodOpenApiParameterObject,
  type ZodOpenApiResponseObject,
  type ZodOpenApiResponsesObject,
} from 'zod-openapi';
import { SCOPES, type Scope } from '../keys/keys-file.ts';
import { inCode } from '../text/printable.ts';
import { PROBLEMS, type ProblemCode, problemSchema } from './problem.ts';
import { PROBLEM_EXAMPLES } from './problem-examples.ts';

export type OpenApiDocument = ReturnType<typeof createDocument>;

/** The problems of every operation. */
const COMMON_CODES = ['invalid_request', 'method_not_allowed', 'host_not_allowed', 'internal'] as const;

/** The problems of every operation with a key. */
const KEY_CODES = ['unauthorized', 'missing_scope', 'rate_limited', 'keys_unavailable'] as const;

/** An operation, without what all operations share. */
export interface OperationDescription {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  readonly tag: string;
  /** The scope that the key must have, or that it must be the key of the admin; without it, no key is needed. */
  readonly scope?: Scope;
  /** Whether a request without a key is served, too. */
  readonly keyOptional?: boolean;
  readonly parameters?: readonly ZodOpenApiParameterObject[];
  readonly requestParams?: NonNullable<ZodOpenApiOperationObject['requestParams']>;
  readonly requestBody?: NonNullable<ZodOpenApiOperationObject['requestBody']>;
  /** The responses that are no problems, by status. */
  readonly responses: Readonly<Record<string, ZodOpenApiResponseObject>>;
  /** The codes of its problems, in addition to those of every operation. */
  readonly codes?: readonly ProblemCode[];
  /** Codes that every operation with a key has otherwise, and this one has not. */
  readonly withoutCodes?: readonly ProblemCode[];
}

/** Operations by path and method. */
export type PathDescriptions = Readonly<
  Record<string, Readonly<Partial<Record<'get' | 'post' | 'put' | 'patch' | 'delete', OperationDescription>>>>
>;

export interface ApiDescription {
  readonly title: string;
  /** Markdown. */
  readonly description: string;
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: PathDescriptions;
}

/** Creates the OpenAPI 3.1 document of a service. Schemas with an `id` in their metadata become its components. */
export function createApiDocument({ title, description, tags, paths }: ApiDescription): OpenApiDocument {
  const codes = codesOf(paths);
  return createDocument(
    {
      openapi: '3.1.0',
      info: {
        title,
        version: '1.0.0',
        description: `${description}\n\n${COMMON_DESCRIPTION}\n\n${codesTable(codes)}`,
        license: { name: 'Apache License 2.0', identifier: 'Apache-2.0' },
      },
      servers: [{ url: '/', description: 'This service' }],
      tags: tags.map((tag) => ({ ...tag })),
      security: [],
      paths: mapValues(paths, (path) => mapValues(path, describeOperation)),
      components: {
        schemas: { Problem: problemSchema.extend({ code: z.enum(codes) }) },
        securitySchemes: { apiKey: API_KEY },
        parameters: { 'X-Request-Id': REQUEST_ID_PARAMETER },
        headers: HEADERS,
        examples: Object.fromEntries(codes.map((code) => [code, PROBLEM_EXAMPLES[code]])),
      },
    },
    // A custom schema describes its input by its metadata.
    { override: tidy, allowEmptySchema: { custom: true } },
  );
}

/** Adds what all operations share: the request id, the key and the problems. */
function describeOperation(operation: OperationDescription): ZodOpenApiOperationObject {
  const { tag, scope, keyOptional, parameters, responses, codes: _, withoutCodes: __, ...rest } = operation;
  const withRequestId = mapValues(responses, (response) => ({
    ...response,
    headers: { ...REQUEST_ID_HEADER, ...response.headers },
  }));
  return {
    ...rest,
    tags: [tag],
    security: scope === undefined ? [] : [{ apiKey: [scope] }, ...(keyOptional ? [{}] : [])],
    parameters: [...(parameters ?? []), { $ref: '#/components/parameters/X-Request-Id' }],
    responses: { ...withRequestId, ...problemsOf(operation) },
  };
}

const COMMON_DESCRIPTION = `Bodies are JSON in UTF-8. Each path with GET has HEAD, too. A trailing slash is ignored.

## Keys

\`Authorization: Bearer <key>\`. A key belongs to one workspace, and no request reads another workspace. Its scopes say
what it may do: ${inCode(SCOPES)}. It may have a rate limit, in requests a
second; a submission counts as the number of its events, and at least as one.

## Errors

Every error response is an \`application/problem+json\` (RFC 9457) with a stable \`code\`; \`errors\` names every error of the
request. New codes may be added.`;

const API_KEY = {
  type: 'http',
  scheme: 'bearer',
  description:
    'An API key. Operations list the scope that the key must have: `ingest` (submit), `query` (read), `delete` (delete users), `sql` (send SQL), `webhooks` (manage webhooks) or `admin` (manage keys, dead letters and links to dashboards).',
} as const;

const REQUEST_ID_PARAMETER = {
  name: 'X-Request-Id',
  in: 'header',
  description:
    'Your id for the request; the response returns it. An id that is not 1 to 128 letters, digits or `._:/+=-` is replaced.',
  schema: { type: 'string' },
} as const;

const HEADERS = {
  'X-Request-Id': {
    description: 'The id of the request: the one that you sent, or a new one.',
    required: true,
    schema: { type: 'string', pattern: '^[A-Za-z0-9._:/+=-]{1,128}$' },
  },
  'Retry-After': {
    description: 'Seconds to wait before you send the request again.',
    required: true,
    schema: { type: 'integer', minimum: 0 },
  },
  Allow: {
    description: 'The methods that the path has.',
    required: true,
    schema: { type: 'string' },
    example: 'GET, HEAD',
  },
  'WWW-Authenticate': {
    description: 'How to authenticate.',
    required: true,
    schema: { type: 'string', const: 'Bearer' },
  },
  'Accept-Encoding': {
    description: 'The encodings that a body may have, when the body had another one.',
    schema: { type: 'string' },
    example: 'gzip, deflate, br, zstd',
  },
} as const;

const REQUEST_ID_HEADER = { 'X-Request-Id': { $ref: '#/components/headers/X-Request-Id' } } as const;

/** The headers of problems, besides `X-Request-Id`, by status. */
const PROBLEM_HEADERS: Readonly<Record<number, keyof typeof HEADERS>> = {
  401: 'WWW-Authenticate',
  405: 'Allow',
  415: 'Accept-Encoding',
  429: 'Retry-After',
  503: 'Retry-After',
};

function problemCodesOf({ scope, codes = [], withoutCodes = [] }: OperationDescription): readonly ProblemCode[] {
  const all: readonly ProblemCode[] = [...COMMON_CODES, ...(scope === undefined ? [] : KEY_CODES), ...codes];
  return all.filter((code) => !withoutCodes.includes(code));
}

function problemsOf(operation: OperationDescription): ZodOpenApiResponsesObject {
  const byStatus = Map.groupBy(problemCodesOf(operation), (code) => PROBLEMS[code]);
  return Object.fromEntries([...byStatus].map(([status, codes]) => [status, describeProblem(status, codes)]));
}

function describeProblem(status: number, codes: readonly ProblemCode[]): ZodOpenApiResponseObject {
  const header = PROBLEM_HEADERS[status];
  return {
    description: `${STATUS_CODES[status]}: ${inCode(codes)}`,
    headers: { ...REQUEST_ID_HEADER, ...(header && { [header]: { $ref: `#/components/headers/${header}` } }) },
    content: {
      'application/problem+json': {
        schema: { $ref: '#/components/schemas/Problem' },
        examples: Object.fromEntries(codes.map((code) => [code, { $ref: `#/components/examples/${code}` }])),
      },
    },
  };
}

/** Returns the codes of all operations, and `not_found` for unknown paths, in the order of {@link PROBLEMS}. */
function codesOf(paths: PathDescriptions): [ProblemCode, ...ProblemCode[]] {
  const operations = Object.values(paths).flatMap((path) => Object.values(path));
  const used = new Set<ProblemCode>(['not_found', ...operations.flatMap(problemCodesOf)]);
  const codes = (Object.keys(PROBLEMS) as ProblemCode[]).filter((code) => used.has(code));
  return codes as [ProblemCode, ...ProblemCode[]];
}

function codesTable(codes: readonly ProblemCode[]): string {
  const rows = codes.map((code) => `| ${PROBLEMS[code]} | \`${code}\` | ${PROBLEM_EXAMPLES[code].summary} |`);
  return ['| status | `code` | meaning |', '| --- | --- | --- |', ...rows].join('\n');
}

/** Removes what would make clients too strict: responses may gain fields, and a pattern is for strings only. */
function tidy({ jsonSchema, io }: { jsonSchema: z.core.JSONSchema.BaseSchema; io: 'input' | 'output' }): void {
  if (io === 'output' && jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
  if (jsonSchema.type !== 'string') delete jsonSchema.pattern;
}

function mapValues<From, To>(object: Readonly<Record<string, From>>, map: (value: From) => To): Record<string, To> {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, map(value)]));
}
