import createFetchClient from 'openapi-fetch';
import type { components, operations, paths } from './query-schema.ts';

export type Event = components['schemas']['Event'];
export type EventPage = components['schemas']['EventPage'];
export type PageBeforeTotal = Omit<EventPage, 'total' | 'totalIsLowerBound'>;
export type User = components['schemas']['User'];
export type Organization = components['schemas']['Organization'];
export type UserOrganization = components['schemas']['UserOrganization'];
export type OrganizationUser = components['schemas']['OrganizationUser'];

type DocumentName = 'properties' | 'context' | 'traits' | `${'user' | 'organization'}.properties`;

/** Filters with open names, as in docs/guide/queries.md: `{ 'properties.plan': 'pro', 'userId[in]': 'jane,joe' }`. */
export interface PropertyFilters {
  readonly [filter: `${DocumentName}.${string}`]: string;
}

export interface FieldFilters {
  readonly [filter: `${string}[${string}]`]: string;
}

/** The parameters of `GET /events`. */
export type EventQuery = Named<operations['listEvents']['parameters']['query']> & PropertyFilters & FieldFilters;

/** The parameters of `GET /users` and `GET /organizations`. */
export type EntityQuery = Named<operations['listUsers']['parameters']['query']> & PropertyFilters;

/** Parameters without those whose names are open. */
type Named<Query> = Omit<
  NonNullable<Query>,
  'properties' | 'context' | 'traits' | 'userProperties' | 'organizationProperties' | 'operators'
>;

export interface QueryClientOptions {
  /** The address of query-api: `https://queries.example.com`. */
  readonly url: string;
  /** An API key with the scope `query`. Default: none, for a workspace that may be read without one. */
  readonly key?: string | undefined;
}

/** All methods throw {@link QueryError}. */
export interface QueryClient {
  /** All events that match, from page to page, without skipping or repeating one. `limit` is the size of a page. */
  events(query?: EventQuery): AsyncGenerator<Event, void, void>;
  /** All users that match, ordered by identifier unless the query says otherwise. */
  users(query?: EntityQuery): AsyncGenerator<User, void, void>;
  /** All organizations that match, ordered by identifier unless the query says otherwise. */
  organizations(query?: EntityQuery): AsyncGenerator<Organization, void, void>;
  /** The organizations of a user, ordered by identifier. */
  organizationsOf(foreignId: string): AsyncGenerator<UserOrganization, void, void>;
  /** The users of an organization, ordered by identifier. */
  usersOf(foreignUserGroupId: string): AsyncGenerator<OrganizationUser, void, void>;
  /**
   * One page of events, with their total.
   *
   * @param onResults is called once, before the promise resolves, with the page without its total. An exact total may
   * take longer than the page: what needs no total can be drawn before
   */
  eventPage(query?: EventQuery, onResults?: (page: PageBeforeTotal) => void): Promise<EventPage>;
  /** A user as it is now; `undefined` when there is none. */
  user(foreignId: string): Promise<User | undefined>;
  /** An organization as it is now; `undefined` when there is none. */
  organization(foreignUserGroupId: string): Promise<Organization | undefined>;
}

/** An error response of query-api. */
export class QueryError extends Error {
  override readonly name = 'QueryError';
  readonly status: number;
  /** A stable code: see docs/guide/api.md. `''` when something else than query-api responded. */
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

const PAGE_SIZE = 1_000;

interface Page<Item> {
  readonly results: readonly Item[];
  readonly nextCursor: string | null;
}

/**
 * Creates a client of query-api.
 *
 * @example
 * const query = createQueryClient({ url: 'https://queries.example.com', key });
 * for await (const event of query.events({ event: 'signed_up', 'properties.plan': 'pro' })) console.log(event);
 */
export function createQueryClient({ url, key }: QueryClientOptions): QueryClient {
  const api = createFetchClient<paths>({
    baseUrl: url,
    ...(key !== undefined && { headers: { authorization: `Bearer ${key}` } }),
    // Names of parameters may hold any character, and openapi-fetch encodes values only.
    querySerializer: (query) => String(new URLSearchParams(definedOf(query))),
  });
  type Query = Record<never, never>;
  const eventPage = async (query: Query = {}, onResults?: (page: PageBeforeTotal) => void): Promise<EventPage> => {
    const params = { query };
    if (!onResults) return dataOf(await api.GET('/events', { params }));
    const body = dataOf(await api.GET('/events', { params, parseAs: 'stream' }));
    return await readPage(body as ReadableStream<Uint8Array>, onResults);
  };
  return {
    // The total is not needed, and costs more than a page.
    events: (query) => itemsOf((cursor) => eventPage({ total: 'none', limit: PAGE_SIZE, ...query, ...cursor })),
    users: (query) =>
      itemsOf(async (cursor) =>
        dataOf(await api.GET('/users', { params: { query: { limit: PAGE_SIZE, ...query, ...cursor } } })),
      ),
    organizations: (query) =>
      itemsOf(async (cursor) =>
        dataOf(await api.GET('/organizations', { params: { query: { limit: PAGE_SIZE, ...query, ...cursor } } })),
      ),
    organizationsOf: (foreignId) =>
      itemsOf(async (cursor) => {
        const params = { path: { foreignId: inPath(foreignId) }, query: { limit: PAGE_SIZE, ...cursor } };
        return dataOf(await api.GET('/users/{foreignId}/organizations', { params }));
      }),
    usersOf: (foreignUserGroupId) =>
      itemsOf(async (cursor) => {
        const params = {
          path: { foreignUserGroupId: inPath(foreignUserGroupId) },
          query: { limit: PAGE_SIZE, ...cursor },
        };
        return dataOf(await api.GET('/organizations/{foreignUserGroupId}/users', { params }));
      }),
    eventPage,
    user: async (foreignId) =>
      foundOf(await api.GET('/users/{foreignId}', { params: { path: { foreignId: inPath(foreignId) } } })),
    organization: async (foreignUserGroupId) => {
      const path = { foreignUserGroupId: inPath(foreignUserGroupId) };
      return foundOf(await api.GET('/organizations/{foreignUserGroupId}', { params: { path } }));
    },
  };
}

/**
 * `fetch` resolves these names as folders, also where they are encoded, and would read something else.
 *
 * @throws {QueryError}
 */
function inPath(id: string): string {
  if (id !== '.' && id !== '..') return id;
  throw new QueryError(0, '', `An address cannot name "${id}"; read its events by userId or groupId.`);
}

async function* itemsOf<Item>(
  load: (query: { cursor?: string }) => Promise<Page<Item>>,
): AsyncGenerator<Item, void, void> {
  let page = await load({});
  yield* page.results;
  while (page.nextCursor !== null) {
    page = await load({ cursor: page.nextCursor });
    yield* page.results;
  }
}

/** Reads a page, of which the total comes last, and calls `onResults` as soon as everything before the total is there. */
async function readPage(
  body: ReadableStream<Uint8Array>,
  onResults: (page: PageBeforeTotal) => void,
): Promise<EventPage> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = '';
  let isCalled = false;
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    text += decoder.decode(read.value, { stream: true });
    const page = isCalled ? undefined : pageBeforeTotal(text);
    if (!page) continue;
    isCalled = true;
    onResults(page);
  }
  const page: EventPage = JSON.parse(text);
  if (!isCalled) onResults(page);
  return page;
}

/** Returns the page if a response has come as far as its total, which follows the cursor. */
function pageBeforeTotal(text: string): PageBeforeTotal | undefined {
  const last = text.slice(Math.max(0, text.lastIndexOf('"nextCursor":')));
  if (!/^"nextCursor":(null|"[^"]*")$/.test(last)) return undefined;
  try {
    return JSON.parse(`${text}}`);
  } catch {
    // A property of an event has that name, and its value ends here by chance.
    return undefined;
  }
}

interface Fetched<Data> {
  readonly data?: Data;
  readonly error?: unknown;
  readonly response: { readonly status: number };
}

/** @throws {QueryError} */
function dataOf<Data>({ data, error, response }: Fetched<Data>): Data {
  if (data !== undefined) return data;
  const { code = '', message = `query-api responded ${response.status}.` } = Object(error) as Partial<QueryError>;
  throw new QueryError(response.status, code, message);
}

/** @throws {QueryError} */
function foundOf<Data>(fetched: Fetched<Data>): Data | undefined {
  const { code } = Object(fetched.error) as Partial<QueryError>;
  return code === 'not_found' ? undefined : dataOf(fetched);
}

function definedOf(query: object): [string, string][] {
  return Object.entries(query).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]]));
}
