import { type InputError, Problem, parseBody } from '@sluice/shared/http/problem';
import type { FastifyInstance } from 'fastify';
import type { z } from 'zod';
import {
  type AllowedAddresses,
  addressErrors,
  type ManagedKind,
  type ManagedRoutes,
  registerManaged,
  type Webhooks,
} from '../webhooks/webhooks.ts';

// The routes of alerts and digests, which are webhooks that send messages about numbers.

/** The largest body, in bytes. */
export const MESSAGE_BODY_BYTES_MAX = 16 * 1_024;

export interface MessagesRoom {
  /** Undefined where webhooks, and with them messages about numbers, are off. */
  readonly webhooks: Webhooks | undefined;
  readonly addresses: AllowedAddresses;
}

interface Changed {
  readonly url?: string | undefined;
  readonly state?: 'active' | 'paused' | undefined;
}

export interface MessageRoutes<Members extends object, New extends { readonly url: string }, Change extends Changed> {
  readonly path: string;
  readonly kind: ManagedKind<Members>;
  readonly describe: ManagedRoutes<Members>['describe'];
  readonly newSchema: z.ZodType<New>;
  readonly changeSchema: z.ZodType<Change>;
  /** Returns what is wrong with what a body names. */
  readonly errorsOf: (given: New | Change, workspace: string) => Promise<readonly InputError[]>;
}

/** Registers the routes of a kind. All that a body has besides an address and a state is stored as its content. */
export function registerMessages<Members extends object, New extends { readonly url: string }, Change extends Changed>(
  app: FastifyInstance,
  { webhooks, addresses }: MessagesRoom,
  { path, kind, describe, newSchema, changeSchema, errorsOf }: MessageRoutes<Members, New, Change>,
): void {
  const parse = async <Body extends New | Change>(schema: z.ZodType<Body>, body: unknown, workspace: string) => {
    const message = parseBody(schema, body);
    const errors = [...addressErrors(message.url, addresses), ...(await errorsOf(message, workspace))];
    if (errors.length > 0) throw new Problem('invalid_request', 'The request has an error.', { errors });
    return message;
  };
  registerManaged(app, {
    ...{ path, bodyBytesMax: MESSAGE_BODY_BYTES_MAX, webhooks, kind, describe },
    parseNew: async (body, workspace) => {
      const { url, ...content } = await parse(newSchema, body, workspace);
      return { url, content };
    },
    parseChange: async (body, workspace) => {
      const { url, state, ...content } = await parse(changeSchema, body, workspace);
      const isChanged = Object.keys(content).length > 0;
      return { ...(url !== undefined && { url }), ...(state && { state }), ...(isChanged && { content }) };
    },
  });
}

/** Returns an error of a document that a body names by its id, if the workspace has none of it. */
export async function errorOfDocument<Content>(
  find: () => Promise<{ readonly content: Content }>,
  path: string,
  isWanted: (content: Content) => string | undefined = () => undefined,
): Promise<readonly InputError[]> {
  const fault = (message: string) => [{ path, code: 'invalid', message }];
  try {
    const message = isWanted((await find()).content);
    return message === undefined ? [] : fault(message);
  } catch (error) {
    if (error instanceof Problem && error.code === 'not_found') return fault(`is no ${path} of the workspace`);
    throw error;
  }
}

export function timeOrNull(ms: number): string | null {
  return ms === 0 ? null : new Date(ms).toISOString();
}
