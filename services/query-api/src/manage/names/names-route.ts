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
  SEARCH_CHARACTERS_MAX,
  SEARCH_RESULTS_MAX,
  timeSchema,
} from '../../http/http.ts';
import {
  isoTime,
  listOf,
  NAMING,
  NAMING_OF,
  namingSchema,
  notEmpty,
  numberParameter,
  parseParameters,
  querySchema,
  readNames,
  refuseErrors,
  refuseParameters,
  SEARCHED_ENTITIES_MAX,
  searchNames,
} from '../../records/records.ts';
import {
  type Admission,
  type ReadDependencies,
  type RequestContext,
  RequestQueries,
  registerQueryRead,
  TimeBudget,
} from '../../store/store.ts';
import type { Namings } from './namings.ts';

/** The largest body, in bytes. */
export const NAMING_BODY_BYTES_MAX = 16 * 1_024;

/** A naming, as it is stored, read and sent. */
const ONE: Admission = { pool: 'documents', bytes: 6 * NAMING_BODY_BYTES_MAX };

/** Results of a search of each kind, unless the request says how many. */
const RESULTS_DEFAULT = 10;

interface Parts {
  Querystring: QueryParameters;
}

/**
 * Registers what names users and organizations, and the search for them.
 *
 * @param namings default: none can be stored, and each workspace has the default
 */
export function registerNames(app: FastifyInstance, deps: ReadDependencies, namings: Namings | undefined): void {
  acceptJson(app, NAMING_BODY_BYTES_MAX);
  const options = { bodyLimit: NAMING_BODY_BYTES_MAX, config: { admission: ONE } };
  const ofAdmin = { ...options, config: { scope: 'admin', admission: ONE } } as const;
  const namingOf = async (workspace: string) => (await namings?.of(workspace)) ?? NAMING;
  registerQueryRead(app, {
    path: '/names',
    describe: DESCRIBE.names,
    parse: parseNamesRequest,
    async respond({ users = [], organizations = [] }, context, reply) {
      const naming = await namingOf(context.workspace);
      const queries = queriesOf(deps, context);
      const [ofUsers, ofOrganizations] = await Promise.all([
        readNames(queries, 'user', naming.users, users),
        readNames(queries, 'organization', naming.organizations, organizations),
      ]);
      return await reply.send({ users: ofUsers, organizations: ofOrganizations });
    },
  });
  registerQueryRead(app, {
    path: '/search',
    describe: DESCRIBE.search,
    parse: parseSearchRequest,
    async respond({ text, limit }, context, reply) {
      const naming = await namingOf(context.workspace);
      const queries = queriesOf(deps, context);
      const search = async (kind: keyof typeof NAMING_OF) => {
        const own = { text, limit, naming: naming[NAMING_OF[kind]] };
        const { found, isComplete } = await searchNames(queries, kind, own);
        const results = found.map(({ lastSeenMs, ...one }) => ({ ...one, lastSeenAt: isoTime(lastSeenMs) }));
        return { results, isComplete };
      };
      const [users, organizations] = await Promise.all([search('user'), search('organization')]);
      const complete = users.isComplete && organizations.isComplete;
      return await reply.send({ users: users.results, organizations: organizations.results, complete });
    },
  });
  app.get<Parts>('/names/properties', described(options, DESCRIBE.get), async ({ query, workspace }) => {
    refuseParameters(query);
    return await namingOf(workspace);
  });
  app.put<Parts>('/names/properties', described(ofAdmin, DESCRIBE.put), async ({ query, body, workspace }) => {
    refuseParameters(query);
    if (!namings) throw new Problem('views_not_available', 'Nothing can be stored; the operator can change that.');
    const naming = parseBody(namingSchema, body);
    await namings.put(workspace, naming);
    return naming;
  });
}

function queriesOf({ config, queryRunner }: ReadDependencies, context: RequestContext): RequestQueries {
  return new RequestQueries(queryRunner, context, new TimeBudget(config.QUERY_TIMEOUT_MS));
}

const NOTHING_FILTERED = { fields: {}, documents: [] } as const;

const ids = (noun: string) =>
  listOf(notEmpty).meta({ description: `Identifiers of ${noun}, separated by commas; \`\\,\` is a comma inside one.` });

const namesParameters = { users: ids('users'), organizations: ids('organizations') } as const;

const searchParameters = {
  q: z
    .string()
    .trim()
    .min(1, 'must not be empty')
    .max(SEARCH_CHARACTERS_MAX, `must have at most ${SEARCH_CHARACTERS_MAX} characters`)
    .meta({ description: 'What is looked for.', example: 'ann@example.com' }),
  limit: numberParameter(SEARCH_RESULTS_MAX, RESULTS_DEFAULT, 'How many of each kind are returned at most.'),
} as const;

/** @throws {Problem} `invalid_request`, naming every error */
function parseNamesRequest(query: QueryParameters) {
  const { values, errors } = parseParameters(namesParameters, NOTHING_FILTERED, query);
  refuseErrors(errors);
  return values;
}

/** @throws {Problem} `invalid_request`, naming every error */
function parseSearchRequest(query: QueryParameters) {
  const { values, errors } = parseParameters(searchParameters, NOTHING_FILTERED, query);
  const missing = query['q'] ? [] : [{ path: 'q', code: 'required', message: 'is required' }];
  refuseErrors([...missing, ...errors]);
  const { q: text = '', limit = RESULTS_DEFAULT } = values;
  return { text, limit };
}

const schemas = once(() => {
  const calledBy = {
    id: z.string(),
    name: z.string().nullable().meta({ description: '`null` where none of the properties has a text.' }),
    email: z.string().nullable().meta({ description: 'Likewise.' }),
  };
  const named = z.object(calledBy).meta({ id: 'NamedEntity' });
  const found = z.object({ ...calledBy, lastSeenAt: timeSchema }).meta({ id: 'FoundEntity' });
  const complete = z.boolean().meta({ description: 'Whether nobody else matches.' });
  return {
    names: z.object({ users: z.array(named), organizations: z.array(named) }).meta({ id: 'Names' }),
    search: z.object({ users: z.array(found), organizations: z.array(found), complete }).meta({ id: 'SearchResults' }),
  };
});

const describing = describer({ tag: 'names' });

const ANN = { id: 'u-17', name: 'Ann Lee', email: 'ann@example.com' };

const DESCRIBE = {
  names: describing('getNames', 'What some users and organizations are called', () => ({
    description:
      'In any order. Those that have neither a name nor an e-mail address, and those that are not known, are left out.',
    requestParams: { query: querySchema(namesParameters, {}) },
    responses: {
      200: {
        description: 'Those that have a name or an e-mail address.',
        content: { 'application/json': { schema: schemas().names, example: { users: [ANN], organizations: [] } } },
      },
    },
  })),
  search: describing('search', 'Users and organizations by identifier, name and e-mail address', () => ({
    description: `Those whose identifier begins with the text, and those whose name and e-mail address have each of its words in them, in any case. What equals the text comes first, then what begins with it, then who was seen last. In a workspace with more than ${new Intl.NumberFormat('en').format(SEARCHED_ENTITIES_MAX)} users, or organizations, parts of names are looked for among so many with the first identifiers; identifiers, and whole values of a property in the same or in small letters, are found of all.`,
    requestParams: { query: querySchema(searchParameters, {}, ['q']) },
    responses: {
      200: {
        description: 'The best first.',
        content: {
          'application/json': {
            schema: schemas().search,
            example: {
              users: [{ ...ANN, lastSeenAt: '2026-03-02T08:30:00.000Z' }],
              organizations: [],
              complete: true,
            },
          },
        },
      },
    },
  })),
  get: describing('getNaming', 'Which properties are names and e-mail addresses', () => ({
    responses: { 200: jsonResponse('Of users, and of organizations.', namingSchema) },
    codes: ['store_unavailable'],
  })),
  put: describing('putNaming', 'Say which properties are names and e-mail addresses', () => ({
    keyOptional: false,
    scope: 'admin',
    description: 'For the whole workspace, in place of what was stored before. `{}` is the default again.',
    requestBody: jsonBody(namingSchema),
    responses: { 200: jsonResponse('What is stored now.', namingSchema) },
    codes: ['views_not_available', 'store_unavailable', ...BODY_CODES],
  })),
} satisfies Record<string, Describe>;
