import { FAST_PROPERTIES_MAX } from '@sluice/shared/clickhouse/fast-properties';
import { Problem, parseBody } from '@sluice/shared/http/problem';
import type { QueryParameters } from '@sluice/shared/http/query-string';
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import {
  acceptJson,
  BODY_CODES,
  type Describe,
  described,
  describer,
  jsonBody,
  jsonResponse,
  once,
  PROPERTY_NAME_CHARACTERS_MAX,
} from '../../http/http.ts';
import { mayBeFast, refuseParameters } from '../../records/records.ts';
import type { Admission } from '../../store/store.ts';
import type { FastProperties } from './fast-properties.ts';

/** The largest body, in bytes. */
export const FAST_BODY_BYTES_MAX = 16 * 1_024;

/** What is declared, as it is stored, read and sent. */
const ONE: Admission = { pool: 'documents', bytes: 6 * FAST_BODY_BYTES_MAX };

interface Parts {
  Querystring: QueryParameters;
}

/**
 * Registers the routes of fast properties.
 *
 * @param fast default: nothing can be stored, and no workspace has any
 */
export function registerFastProperties(app: FastifyInstance, fast: FastProperties | undefined): void {
  acceptJson(app, FAST_BODY_BYTES_MAX);
  const options = { bodyLimit: FAST_BODY_BYTES_MAX, config: { admission: ONE } };
  const ofAdmin = { ...options, config: { scope: 'admin', admission: ONE } } as const;
  const path = '/properties/fast';
  app.get<Parts>(path, described(options, DESCRIBE.get), async ({ query, workspace }) => {
    refuseParameters(query);
    return { properties: (await fast?.of(workspace)) ?? [] };
  });
  app.put<Parts>(path, described(ofAdmin, DESCRIBE.put), async ({ query, body, workspace }) => {
    refuseParameters(query);
    if (!fast) throw new Problem('views_not_available', 'Nothing can be stored; the operator can change that.');
    return { properties: await fast.put(workspace, parseBody(schemas(), body).properties) };
  });
}

const schemas = once(() => {
  const name = z
    .string()
    .min(1, 'must not be empty')
    .max(PROPERTY_NAME_CHARACTERS_MAX, `must have at most ${PROPERTY_NAME_CHARACTERS_MAX} characters`)
    .refine(
      mayBeFast,
      'must have no dot, no character NUL, no half of a surrogate pair, and no 19 digits one after another',
    );
  const properties = z
    .array(name)
    .max(FAST_PROPERTIES_MAX, `must have at most ${FAST_PROPERTIES_MAX} properties`)
    .refine((names) => new Set(names).size === names.length, 'must name each one once')
    .meta({ description: 'Names of properties of events.' });
  return z.strictObject({ properties }).meta({ id: 'FastProperties', example: { properties: ['plan', 'amount'] } });
});

const describing = describer({ tag: 'properties' });

const DESCRIBE = {
  get: describing('getFastProperties', 'Which properties of events are fast', () => ({
    responses: { 200: jsonResponse('What is declared, in any order.', schemas()) },
    codes: ['store_unavailable'],
  })),
  put: describing('putFastProperties', 'Declare which properties of events are fast', () => ({
    keyOptional: false,
    scope: 'admin',
    description: `In place of what was declared before; up to ${FAST_PROPERTIES_MAX}. Of events that are stored from now on, reports that group by these, measure them or filter by them read columns of their own. The answers are the same as before.`,
    requestBody: jsonBody(schemas()),
    responses: { 200: jsonResponse('What is declared now.', schemas()) },
    codes: ['views_not_available', 'store_unavailable', ...BODY_CODES],
  })),
} satisfies Record<string, Describe>;
