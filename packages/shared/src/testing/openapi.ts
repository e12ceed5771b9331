import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { Validator } from '@seriousme/openapi-schema-validator';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import type { FastifyInstance, RouteOptions } from 'fastify';
import type { OpenApiDocument } from '../http/openapi.ts';

/** Returns what is wrong with an OpenAPI 3.1 document, by the schema of that standard; `undefined` when it is valid. */
export async function errorsOfDocument(document: object): Promise<unknown> {
  const validator = new Validator();
  const { valid, errors } = await validator.validate(structuredClone(document) as Record<string, unknown>);
  if (valid && validator.version !== '3.1') return `is OpenAPI ${validator.version}`;
  return valid ? undefined : errors;
}

/** An object of the document, with its JSON pointer. */
interface Place {
  readonly pointer: string;
  readonly value: Readonly<Record<string, unknown>>;
}

/** Checks values against the schemas of a document. */
export interface DocumentChecker {
  /** The operations, by `GET /path`. */
  readonly operations: ReadonlyMap<string, Place>;
  /** Returns what is wrong with a value by the schema at a pointer. */
  errors(pointer: string, value: unknown): unknown;
  /** Returns what is wrong with a response of an operation: its status, headers, media type or body. */
  errorsOfResponse(operation: string, response: ReceivedResponse): unknown;
  /** Returns what is wrong with the examples of the document, and how many there are. */
  examples(): { readonly count: number; readonly errors: readonly unknown[] };
}

interface ReceivedResponse {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
}

const METHODS = ['get', 'post', 'put', 'patch', 'delete'];

export function createDocumentChecker(document: OpenApiDocument): DocumentChecker {
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  formats.default(ajv);
  ajv.addSchema(document, 'document');
  const operations = new Map(
    children({ pointer: '', value: { ...document.paths } }).flatMap(({ name: path, place }) =>
      children(place)
        .filter(({ name }) => METHODS.includes(name))
        .map(({ name, place: { pointer, value } }) => [
          `${name.toUpperCase()} ${path}`,
          { pointer: `/paths${pointer}`, value },
        ]),
    ),
  );

  function errors(pointer: string, value: unknown): unknown {
    const validate = ajv.compile({ $ref: `document#${encodeURI(pointer)}` });
    return validate(value) ? undefined : { pointer, value, errors: validate.errors };
  }

  /** Returns the place itself, or the place that it refers to. */
  function resolved(place: Place): Place {
    const ref = place.value['$ref'];
    if (typeof ref !== 'string') return place;
    const names = ref.slice(2).split('/').map(unescapePointer);
    const value = names.reduce<unknown>((object, name) => (object as Record<string, unknown>)[name], document);
    return { pointer: ref.slice(1), value: value as Place['value'] };
  }

  /** Returns the examples of a parameter, a header or a media type, each with the pointer of its schema. */
  function examplesOf({ pointer, value }: Place): [string, unknown][] {
    const named = children(child({ pointer, value }, 'examples')).map(({ place }) => resolved(place).value['value']);
    const all = 'example' in value ? [value['example'], ...named] : named;
    return all.map((example) => [`${pointer}/schema`, example]);
  }

  function examplesOfOperation(operation: Place): [string, unknown][] {
    const responses = children(child(operation, 'responses')).map(({ place }) => place);
    const holders = [child(operation, 'requestBody'), ...responses];
    const media = holders.flatMap((holder) => children(child(holder, 'content')));
    const headers = responses.flatMap((response) => children(child(response, 'headers')));
    const parameters = children(child(operation, 'parameters'));
    return [...media, ...headers, ...parameters].flatMap(({ place }) => examplesOf(resolved(place)));
  }

  return {
    operations,
    errors,
    errorsOfResponse(name, { statusCode, headers, body }) {
      const operation = operations.get(name);
      if (!operation) return `${name} is not in the document`;
      const response = child(child(operation, 'responses'), String(statusCode));
      const missing = children(child(response, 'headers'))
        .filter(
          ({ name: header, place }) => resolved(place).value['required'] === true && !headers[header.toLowerCase()],
        )
        .map(({ name: header }) => header);
      if (missing.length > 0) return { statusCode, missing };
      const type = String(headers['content-type']).split(';', 1)[0] ?? '';
      const media = child(child(response, 'content'), type);
      if (!media.value['schema']) return { statusCode, type, body };
      return errors(`${media.pointer}/schema`, type.endsWith('json') ? JSON.parse(body) : body);
    },
    examples() {
      const all = [...operations.values()].flatMap(examplesOfOperation);
      return {
        count: all.length,
        errors: all.map(([pointer, value]) => errors(pointer, value)).filter((error) => error !== undefined),
      };
    },
  };
}

/** Returns the routes that an app declares while `build` runs, as `GET /path/{}`, without those that respond 405. */
export async function routesOf(build: () => Promise<FastifyInstance>): Promise<ReadonlySet<string>> {
  const declared: { url: string; method: string }[] = [];
  const watch = (message: unknown) => {
    (message as { fastify: FastifyInstance }).fastify.addHook('onRoute', ({ url, method }: RouteOptions) => {
      declared.push(...[method].flat().map((one) => ({ url, method: one })));
    });
  };
  subscribe('fastify.initialization', watch);
  const app = await build();
  unsubscribe('fastify.initialization', watch);
  const routes = new Set<string>();
  for (const { url, method } of declared) {
    const { statusCode } = await app.inject({ method: method as 'GET', url });
    if (statusCode !== 405) routes.add(`${method} ${withoutNames(url.replaceAll(/:\w+/g, '{}'))}`);
  }
  return routes;
}

/** `GET /users/{}` for `GET /users/{foreignId}`. */
export function withoutNames(route: string): string {
  return route.replaceAll(/\{\w*\}/g, '{}');
}

function children({ pointer, value }: Place): { readonly name: string; readonly place: Place }[] {
  return Object.keys(value).map((name) => ({ name, place: child({ pointer, value }, name) }));
}

function child({ pointer, value }: Place, name: string): Place {
  const escaped = name.replaceAll('~', '~0').replaceAll('/', '~1');
  return { pointer: `${pointer}/${escaped}`, value: (value[name] ?? {}) as Place['value'] };
}

function unescapePointer(name: string): string {
  return name.replaceAll('~1', '/').replaceAll('~0', '~');
}
