import { FAST_LIST, FAST_PROPERTIES_MAX } from '@sluice/shared/clickhouse/fast-properties';
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
import {
  type Admission,
  BoundParameters,
  contextOf,
  type QueryContext,
  type QueryRunner,
  type ReadDependencies,
  registerQueryRead,
  type Sql,
  type Tables,
} from '../../store/store.ts';
import type { FastProperties } from './fast-properties.ts';
import { PROPOSED_MAX, type PropertyReads } from './property-reads.ts';

/** The largest body, in bytes. */
export const FAST_BODY_BYTES_MAX = 16 * 1_024;

/** What is declared, as it is stored, read and sent. */
const ONE: Admission = { pool: 'documents', bytes: 6 * FAST_BODY_BYTES_MAX };

/** What is proposed, as it is stored, counted and sent. */
const PROPOSED: Admission = { pool: 'documents', bytes: 16 * FAST_BODY_BYTES_MAX };

/** Events have a month from 1970 to 2106 at most. */
const MONTHS_MAX = 2_000;

/** How many of the newest events are looked at. */
const SAMPLE_EVENTS = 10_000;

/** How many different values of these are many. A dictionary of ClickHouse has 8,192 values at most before it costs more than plain values. */
const MANY_VALUES = 2_000;

interface Parts {
  Querystring: QueryParameters;
}

/**
 * Registers the routes of fast properties.
 *
 * @param fast default: nothing can be stored, and no workspace has any
 * @param reads what was read of properties; default: nothing is known
 */
export function registerFastProperties(
  app: FastifyInstance,
  { queryRunner }: ReadDependencies,
  fast: FastProperties | undefined,
  reads: PropertyReads | undefined,
): void {
  acceptJson(app, FAST_BODY_BYTES_MAX);
  const options = { bodyLimit: FAST_BODY_BYTES_MAX, config: { admission: ONE } };
  const ofAdmin = { ...options, config: { scope: 'admin', admission: ONE } } as const;
  const path = '/properties/fast';
  app.get<Parts>(path, described(options, DESCRIBE.get), async ({ query, workspace }) => {
    refuseParameters(query);
    return { properties: (await fast?.of(workspace)) ?? [] };
  });
  app.put<Parts>(path, described(ofAdmin, DESCRIBE.put), async (request) => {
    const { query, body, workspace } = request;
    refuseParameters(query);
    if (!fast) throw new Problem('views_not_available', 'Nothing can be stored; the operator can change that.');
    const { properties } = parseBody(schemas(), body);
    const findVaried = (names: readonly string[]) => findVariedProperties(queryRunner, contextOf(request), names);
    return { properties: await fast.put(workspace, properties, findVaried) };
  });
  const proposing = { config: { admission: PROPOSED } };
  app.get<Parts>(`${path}/proposed`, described(proposing, DESCRIBE.proposed), async ({ query, workspace }) => {
    refuseParameters(query);
    const [declared, read] = await Promise.all([fast?.of(workspace), reads?.of(workspace)]);
    const properties = read?.map((one) => ({
      ...one,
      mayBeFast: mayBeFast(one.name),
      isFast: declared?.includes(one.name) ?? false,
    }));
    return { properties: properties ?? [] };
  });
  registerQueryRead(app, {
    path: `${path}/progress`,
    describe: DESCRIBE.progress,
    parse: refuseParameters,
    async respond(_, context, reply) {
      const query = { kind: 'fast_properties', pool: 'reports', graceMs: 0, statement: progressQuery } as const;
      const rows = await queryRunner.all({ ...query, ...context });
      return await reply.send({ months: rows.map(([month, events, filled]) => ({ month, events, filled })) });
    },
  });
}

/** Returns those of some properties that have many different values in the newest events. @throws {Problem} */
async function findVariedProperties(
  queryRunner: Pick<QueryRunner, 'all'>,
  context: QueryContext,
  names: readonly string[],
): Promise<ReadonlySet<string>> {
  if (names.length === 0) return new Set();
  const query = { kind: 'fast_properties', pool: 'reports', ...context } as const;
  const [counts = []] = await queryRunner.all({ ...query, statement: (tables) => valuesQuery(tables, names) });
  return new Set(names.filter((_, index) => Number(counts[index]) >= MANY_VALUES));
}

function valuesQuery({ events }: Tables, names: readonly string[]): Sql {
  const parameters = new BoundParameters('n');
  const counts = names.map((name) => `uniq(JSONExtractRaw(properties, ${parameters.text(name)}))`);
  return {
    sql: `SELECT ${counts.join(', ')}
FROM (SELECT properties FROM ${events} ORDER BY timestamp DESC LIMIT ${SAMPLE_EVENTS})`,
    params: parameters.params,
  };
}

/** Counts the events of each month, and those whose columns have what is declared now: what was known before may be older. */
function progressQuery({ events, fastPropertiesOf }: Tables): Sql {
  return {
    sql: `WITH (SELECT argMax(row_set, declared_at) FROM ${fastPropertiesOf('workspace')}) AS declared
SELECT formatDateTime(timestamp, '%Y-%m') AS month, count(), countIf(${FAST_LIST} = declared)
FROM ${events}
GROUP BY month
ORDER BY month DESC
LIMIT ${MONTHS_MAX}`,
    params: {},
  };
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

const proposedSchema = once(() => {
  const property = z
    .object({
      name: z.string(),
      reads: z.int().min(0).meta({ description: 'How many statements of reports have read it from the text.' }),
      bytes: z.int().min(0).meta({
        description:
          'What these have read. A statement that reads several properties counts for each with an equal share.',
      }),
      mayBeFast: z.boolean().meta({ description: 'Whether it can be declared.' }),
      isFast: z.boolean().meta({ description: 'Whether it is declared by now.' }),
    })
    .meta({ id: 'ProposedProperty' });
  const example = { name: 'plan', reads: 120, bytes: 5_400_000_000, mayBeFast: true, isFast: false };
  return z
    .object({ properties: z.array(property).max(PROPOSED_MAX) })
    .meta({ id: 'ProposedProperties', example: { properties: [example] } });
});

const progressSchema = once(() => {
  const month = z
    .object({
      month: z.string().meta({ description: 'Year and month, in UTC.' }),
      events: z.int().min(0),
      filled: z.int().min(0).meta({ description: 'How many of them have columns of all that is declared now.' }),
    })
    .meta({ id: 'FilledMonth' });
  const example = { month: '2026-03', events: 120_000, filled: 80_000 };
  return z.object({ months: z.array(month) }).meta({ id: 'FilledMonths', example: { months: [example] } });
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
  proposed: describing('getProposedProperties', 'Which properties reports have read from the text', () => ({
    description: `Of series, funnels and retention of the last seven days, up to ${PROPOSED_MAX}, the most bytes first. Only names that were asked for in requests of this workspace are there.`,
    responses: { 200: jsonResponse('What was read.', proposedSchema()) },
    codes: ['store_unavailable'],
  })),
  progress: describing('getFastProgress', 'How far columns of older events are filled', () => ({
    description: 'By month, the newest first. The answers of reports do not depend on it.',
    responses: { 200: jsonResponse('The months with events.', progressSchema()) },
  })),
} satisfies Record<string, Describe>;
