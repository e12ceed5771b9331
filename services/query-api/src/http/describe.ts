import type { OperationDescription } from '@sluice/shared/http/openapi';
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import type { QueryConfig } from '../config.ts';
import { LIMIT_MAX } from './limits.ts';

/** What all operations of query-api have in common. */
export type CommonDescription = Pick<Required<OperationDescription>, 'scope' | 'keyOptional' | 'codes'>;

/**
 * Describes a route for the OpenAPI document. It is called when somebody asks for the document, so that a start creates none
 * of its schemas. A parameter of the path may have another name in `requestParams.path` than in the route.
 */
export type Describe = (common: CommonDescription, config: QueryConfig) => OperationDescription;

declare module 'fastify' {
  interface FastifyContextConfig {
    describe?: Describe;
  }
}

/** A route and its description. */
export interface DescribedRoute {
  readonly method: string;
  readonly path: string;
  readonly describe: Describe;
}

/** Returns the routes with a description that are registered from now on. The list grows as they are. */
export function describedRoutes(app: FastifyInstance): readonly DescribedRoute[] {
  const routes: DescribedRoute[] = [];
  app.addHook('onRoute', ({ method, url: path, config }) => {
    if (config?.describe && method !== 'HEAD') routes.push({ method: String(method), path, describe: config.describe });
  });
  return routes;
}

/** Returns the options of a route with its description. */
export function described<Options extends { readonly config: object }>(options: Options, describe: Describe) {
  return { ...options, config: { ...options.config, describe } };
}

/** What an operation has besides its names and what it shares with its neighbors. */
export type OwnDescription = Pick<OperationDescription, 'responses'> & Partial<OperationDescription>;

/** What the operations of a route file share. `codes` are by default those of all operations. */
type SharedDescription = Pick<OperationDescription, 'tag'> & Partial<CommonDescription>;

/** Returns a function that describes operations: each has what they share, and its own. */
export function describer({ codes: sharedCodes, ...shared }: SharedDescription) {
  return (operationId: string, summary: string, own: (config: QueryConfig) => OwnDescription): Describe =>
    (common, config) => {
      const { codes = [], ...rest } = own(config);
      const all = [...(sharedCodes ?? common.codes), ...codes];
      return { ...common, ...shared, operationId, summary, ...rest, codes: all };
    };
}

/** The problems of a body of JSON. */
export const BODY_CODES = ['malformed_json', 'body_too_large', 'unsupported_media_type'] as const;

export function jsonBody(schema: z.ZodType) {
  return { required: true, content: { 'application/json': { schema } } };
}

export function jsonResponse(description: string, schema: z.ZodType) {
  return { description, content: { 'application/json': { schema } } };
}

/** Returns a function that creates something at its first call, such as a schema that two routes describe. */
export function once<Value>(create: () => Value): () => Value {
  let created: { readonly value: Value } | undefined;
  return () => {
    created ??= { value: create() };
    return created.value;
  };
}

export const timeSchema = z.string().meta({ format: 'date-time', description: 'In UTC, with milliseconds.' });
export const jsonObjectSchema = z.record(z.string(), z.unknown());
export const limitSchema = z.int().min(0).max(LIMIT_MAX).meta({ description: 'The limit that was applied.' });
export const nextCursorSchema = z
  .string()
  .nullable()
  .meta({ description: 'Where the next page begins; `null` at the end.' });
