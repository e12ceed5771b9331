import { Problem, type ProblemCode } from '@sluice/shared/http/problem';
import type { QueryParameters } from '@sluice/shared/http/query-string';
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import type { QueryConfig } from '../config.ts';
import {
  acceptJson,
  BODY_CODES,
  type Describe,
  described,
  describer,
  jsonBody,
  jsonResponse,
  type OwnDescription,
  once,
} from '../http/http.ts';
import { PAGE_BYTES, pageMembers, parseWholeList, refuseParameters, wholeListParameters } from '../records/records.ts';
import { whileConnected } from '../store/store.ts';
import { PAUSE_REASONS } from './webhook.ts';
import { type ManagedKind, WebhookOperations } from './webhook-operations.ts';
import type { Webhooks } from './webhooks-component.ts';

// The routes that webhooks of every kind have: a list, and what is done with one of them.

/** The memory of a webhook as a multiple of its bytes: as for documents. */
const MEMORY_PER_BYTE = 6;

export interface ManagedParts {
  Querystring: QueryParameters;
  Params: { readonly id: string };
}

type Operations<Members extends object> = WebhookOperations<Members>;

export interface ManagedRoutes<Members extends object> {
  /** `/webhooks` */
  readonly path: string;
  /** The largest body, in bytes. */
  readonly bodyBytesMax: number;
  /** Undefined where webhooks are off. */
  readonly webhooks: Webhooks | undefined;
  readonly kind: ManagedKind<Members>;
  readonly describe: Readonly<Record<(typeof ROUTES)[number], Describe>>;
  /** @throws {Problem} `invalid_request`, naming every error */
  readonly parseNew: (body: unknown, workspace: string) => Promise<Parameters<Operations<Members>['create']>[1]>;
  /** @throws {Problem} `invalid_request`, naming every error */
  readonly parseChange: (body: unknown, workspace: string) => Promise<Parameters<Operations<Members>['change']>[2]>;
}

const ROUTES = ['list', 'create', 'get', 'change', 'remove', 'rotate', 'resume', 'test', 'deliveries'] as const;

/**
 * Registers the routes.
 *
 * @returns what further routes need: the operations, which throw a Problem where webhooks are off, and the options of a route that
 * waits for the event store
 */
export function registerManaged<Members extends object>(
  app: FastifyInstance,
  { path, bodyBytesMax, webhooks, kind, describe, parseNew, parseChange }: ManagedRoutes<Members>,
) {
  const operations = webhooks && new WebhookOperations({ webhooks, kind });
  acceptJson(app, bodyBytesMax);
  const optionsOf = (pool: 'documents' | 'webhooks', bytes = MEMORY_PER_BYTE * bodyBytesMax) =>
    ({ config: { scope: 'webhooks', admission: { pool, bytes } }, bodyLimit: bodyBytesMax }) as const;
  const options = optionsOf('documents');
  const waiting = optionsOf('webhooks');
  const list = optionsOf('documents', MEMORY_PER_BYTE * (PAGE_BYTES + bodyBytesMax));
  const on = () => {
    if (operations) return operations;
    throw new Problem('webhooks_not_available', 'Webhooks are off; the operator can turn them on.');
  };
  app.get<ManagedParts>(path, described(list, describe.list), async (request) => {
    return await on().list(request.workspace, parseWholeList(request.query, [path.slice(1), request.workspace]));
  });
  app.post<ManagedParts>(path, described(waiting, describe.create), async (request, reply) => {
    refuseParameters(request.query);
    const given = await parseNew(request.body, request.workspace);
    return await reply.status(201).send(await on().create(request.workspace, given));
  });
  app.get<ManagedParts>(`${path}/:id`, described(options, describe.get), async (request) => {
    refuseParameters(request.query);
    return await on().find(request.workspace, request.params.id);
  });
  app.patch<ManagedParts>(`${path}/:id`, described(options, describe.change), async (request) => {
    refuseParameters(request.query);
    const change = await parseChange(request.body, request.workspace);
    return await on().change(request.workspace, request.params.id, change);
  });
  app.delete<ManagedParts>(`${path}/:id`, described(options, describe.remove), async (request, reply) => {
    refuseParameters(request.query);
    await on().delete(request.workspace, request.params.id);
    return await reply.status(204).send();
  });
  for (const name of ['rotate', 'resume'] as const) {
    app.post<ManagedParts>(`${path}/:id/${name}`, described(options, describe[name]), async (request) => {
      refuseParameters(request.query);
      return await on()[name](request.workspace, request.params.id);
    });
  }
  app.post<ManagedParts>(`${path}/:id/test`, described(options, describe.test), async (request, reply) => {
    refuseParameters(request.query);
    return await whileConnected(reply, async (signal) => {
      const { workspace, params, releaseSlot } = request;
      return reply.send(await on().test(workspace, params.id, signal, releaseSlot));
    });
  });
  app.get<ManagedParts>(`${path}/:id/deliveries`, described(options, describe.deliveries), async (request) => {
    refuseParameters(request.query);
    return { deliveries: await on().deliveries(request.workspace, request.params.id) };
  });
  return { on, waiting };
}

const time = z.iso.datetime();

/** What the responses of all kinds have, before and after what is particular to one. */
export const managedSchema = {
  head: { id: z.uuid(), url: z.string() },
  rest: {
    state: z.enum(['active', 'paused']),
    pausedBecause: z.enum(PAUSE_REASONS).nullable().meta({
      description:
        '`client`: by a request. `gone`: the receiver answered 410. `failing`: its attempts failed for too long. `position_lost`: the event store has other data than before; use replay. `filter`: its filter cannot be read any more.',
    }),
    stateSince: time,
    failedAttempts: z.int().min(0).meta({ description: 'Attempts that failed since the last delivery.' }),
    failingSince: time.nullable(),
    previousSecretUntil: time
      .nullable()
      .meta({ description: 'Until when the secret before the last rotation signs as well.' }),
    createdAt: time,
  },
} as const;

const outcome = {
  id: z.string().meta({ description: 'The header `webhook-id`: the same in all attempts of a delivery.' }),
  status: z.int().nullable().meta({ description: 'The status of the response, if there was one.' }),
  durationMs: z.int().min(0),
  error: z.string().nullable(),
};

const testSchema = once(() => z.object({ ...outcome, delivered: z.boolean() }).meta({ id: 'WebhookTest' }));

const deliverySchema = once(() =>
  z
    .object({
      ...outcome,
      at: time,
      type: z.enum(['event', 'events', 'alert', 'digest', 'test']),
      events: z.int().min(0),
      attempt: z.int().min(1),
    })
    .meta({ id: 'WebhookDelivery' }),
);

export interface DescribedKind {
  /** `webhook` */
  readonly name: string;
  /** `Webhook` */
  readonly title: string;
  readonly tag: string;
  readonly schema: () => z.ZodObject;
  readonly created: z.ZodType;
  readonly change: z.ZodType;
  /** Of the route that creates one, as the description. */
  readonly summary: string;
  readonly description: (config: QueryConfig) => string;
  /** Problems of a body besides those of every body. */
  readonly codes: readonly ProblemCode[];
}

/** Describes the routes that {@link registerManaged} registers. */
export function describeManaged(kind: DescribedKind) {
  const { name, title, tag, schema } = kind;
  const describing = describer({
    ...{ tag, scope: 'webhooks', keyOptional: false },
    codes: ['webhooks_not_available', 'store_unavailable', 'overloaded'],
  });
  const secret = z.string().meta({
    description: 'The key of signatures. It is shown only in this response.',
    example: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYqr',
  });
  const withSecret = once(() =>
    schema()
      .extend({ secret })
      .meta({ id: `${title}WithSecret` }),
  );

  /** Describes an operation of one; by itself it responds with the one. */
  function describingOne(
    operationId: string,
    summary: string,
    own: () => Partial<OwnDescription> = () => ({}),
  ): Describe {
    return describing(operationId, summary, () => {
      const { requestParams, codes = [], ...rest } = own();
      return {
        responses: { 200: jsonResponse(`The ${name}.`, schema()) },
        ...rest,
        requestParams: {
          path: z.object({ id: z.string().meta({ description: `The id of the ${name}.` }) }),
          ...requestParams,
        },
        codes: ['not_found', ...codes],
      };
    });
  }

  const describe = {
    list: describing(`list${title}s`, `${title}s of the workspace`, () => ({
      description: 'A page ends after a mebibyte, too.',
      requestParams: { query: z.object(wholeListParameters) },
      responses: {
        200: jsonResponse('A page, oldest first.', z.object({ [`${name}s`]: z.array(schema()), ...pageMembers })),
      },
    })),
    create: describing(`create${title}`, kind.summary, (config) => ({
      description: kind.description(config),
      requestBody: jsonBody(kind.created),
      responses: { 201: jsonResponse(`The ${name}, with its secret.`, withSecret()) },
      codes: [...BODY_CODES, ...kind.codes],
    })),
    get: describingOne(`get${title}`, `${article(title)} ${name}`),
    change: describingOne(`change${title}`, `Change ${article(title).toLowerCase()} ${name}`, () => ({
      requestBody: jsonBody(kind.change),
      codes: [...BODY_CODES, ...kind.codes],
    })),
    remove: describingOne(`delete${title}`, `Delete ${article(title).toLowerCase()} ${name}`, () => ({
      responses: { 204: { description: 'It is deleted.' } },
    })),
    rotate: describingOne(`rotate${title}`, 'Change the secret', () => ({
      description: 'The secret before signs as well for 24 hours: each delivery has two signatures.',
      responses: { 200: jsonResponse(`The ${name}, with its new secret.`, withSecret()) },
    })),
    resume: describingOne(`resume${title}`, 'Go on where it stopped'),
    test: describingOne(`test${title}`, 'Send a test', () => ({
      description:
        'Sends `{"type": "test", …}` once, and waits for the response. Two tests of a workspace may be under way at once.',
      responses: { 200: jsonResponse('What came of it.', testSchema()) },
    })),
    deliveries: describingOne(`list${title}Deliveries`, 'The last attempts', () => ({
      responses: {
        200: jsonResponse(
          'The last 100 attempts at most, and the last 100 tests, newest first.',
          z.object({ deliveries: z.array(deliverySchema()) }),
        ),
      },
    })),
  } satisfies ManagedRoutes<object>['describe'];
  return { describe, describingOne };
}

function article(title: string): string {
  return /^[AEIOU]/.test(title) ? 'An' : 'A';
}
