import { authenticate } from '@sluice/shared/http/authentication';
import { type InputError, Problem, parseBody } from '@sluice/shared/http/problem';
import type { QueryParameters } from '@sluice/shared/http/query-string';
import type { KeyRing } from '@sluice/shared/keys/key-ring';
import { hashKey } from '@sluice/shared/keys/keys-file';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { acceptJson, BODY_CODES, described, describer, jsonBody, jsonResponse, once } from '../../http/http.ts';
import {
  PAGE_BYTES,
  pageMembers,
  parseParameters,
  parseWholeList,
  refuseErrors,
  refuseParameters,
  wholeListParameters,
} from '../../records/records.ts';
import { funnelSchema, retentionSchema, seriesSchema, valuesSchema } from '../../reports/reports.ts';
import { SQL_FORMATS, type SqlRunner } from '../../sql/sql.ts';
import type { Admission, ReadDependencies } from '../../store/store.ts';
import type { StoredDocument, ViewHead } from './console-documents.ts';
import { changed, recordOf } from './document-operations.ts';
import { generateLinkKey } from './link-keys.ts';
import { type StoredReports, storedReports } from './stored-reports.ts';
import {
  DASHBOARDS_MAX,
  type Dashboard,
  dashboardChangeSchema,
  LINKS_MAX,
  type Link,
  newDashboardSchema,
  newLinkSchema,
  newViewSchema,
  REPORTS,
  TILES_MAX,
  VIEW_BODY_BYTES_MAX,
  VIEWS_MAX,
  type View,
  viewChangeSchema,
  viewsOf,
} from './view.ts';
import { inRange, rangeParameter, requireReport, viewQuery } from './view-query.ts';
import type { Views } from './views.ts';

interface Parts {
  Querystring: QueryParameters;
  Params: { readonly id: string; readonly view: string; readonly link: string };
}

/** The memory of a document as a multiple of its bytes: its JSON as it was read, what it says, and its JSON as it is sent. */
const MEMORY_PER_BYTE = 6;

/** A page, or a few documents with the heads of the views of a dashboard, and a link with its dashboard. */
const LIST: Admission = { pool: 'documents', bytes: MEMORY_PER_BYTE * (PAGE_BYTES + VIEW_BODY_BYTES_MAX) };
const DOCUMENT: Admission = { pool: 'documents', bytes: 2 * MEMORY_PER_BYTE * VIEW_BODY_BYTES_MAX };
const REVOCATION: Admission = { ...DOCUMENT, pool: 'revocations' };

/** Returns what is stored. @throws {Problem} `views_not_available` where nothing can be */
type Stored = () => Views;

export interface ViewsDependencies extends ReadDependencies {
  readonly keys: KeyRing;
  readonly sqlRunner: SqlRunner;
}

/**
 * Registers the routes of views, dashboards and links.
 *
 * @param views default: they are off, and each route says so
 */
export function registerViews(app: FastifyInstance, deps: ViewsDependencies, views: Views | undefined): void {
  acceptJson(app, VIEW_BODY_BYTES_MAX);
  const reports = storedReports(deps);
  const stored = () => {
    if (views) return views;
    throw new Problem('views_not_available', 'Saved views are off; the operator can turn them on.');
  };
  registerSavedViews(app, stored, reports, deps.keys);
  registerDashboards(app, stored);
  registerTiles(app, stored, reports);
  registerLinks(app, stored);
}

const options = { bodyLimit: VIEW_BODY_BYTES_MAX, config: { admission: DOCUMENT } };
const listOptions = { ...options, config: { admission: LIST } };

function registerSavedViews(app: FastifyInstance, stored: Stored, reports: StoredReports, keys: KeyRing): void {
  // Whoever reads a tile runs its statement, also by a link.
  const requireAllowed = async (request: FastifyRequest, view: View) => {
    if (view.report === 'sql') authenticate(request, keys, 'sql');
    await requireReport(view, async (query) =>
      reports[view.report].parse(await stored().segments.inQuery(request.workspace, query)),
    );
  };
  app.get<Parts>('/views', described(listOptions, VIEW.list), async (request) => {
    const { membersAfter, ...page } = parseWholeList(request.query, ['views', request.workspace]);
    const { documents, hasMore } = await stored().views.page(request.workspace, page);
    return { views: documents.map(recordOf), ...membersAfter(documents.at(-1), hasMore) };
  });
  app.post<Parts>('/views', described(options, VIEW.create), async (request, reply) => {
    const view = parseRequest(newViewSchema, request);
    await requireAllowed(request, view);
    return await reply.status(201).send(recordOf(await stored().views.create(request.workspace, view)));
  });
  app.get<Parts>('/views/:id', described(options, VIEW.get), async (request) => {
    refuseParameters(request.query);
    return recordOf(await stored().views.find(request.workspace, request.params.id));
  });
  app.patch<Parts>('/views/:id', described(options, VIEW.change), async (request) => {
    const change = parseRequest(viewChangeSchema, request);
    const { views } = stored();
    const { workspace, params } = request;
    const view = await views.change(workspace, params.id, async (before) => {
      const after = changed<View>(before, change);
      if (change.report ?? change.parameters) await requireAllowed(request, after);
      return after;
    });
    return recordOf(view);
  });
  app.delete<Parts>('/views/:id', described(options, VIEW.remove), async (request, reply) => {
    refuseParameters(request.query);
    const { views } = stored();
    await views.delete([await views.find(request.workspace, request.params.id)]);
    return await reply.status(204).send();
  });
}

function registerDashboards(app: FastifyInstance, stored: Stored): void {
  app.get<Parts>('/dashboards', described(listOptions, DASHBOARD.list), async (request) => {
    const { membersAfter, ...page } = parseWholeList(request.query, ['dashboards', request.workspace]);
    const { documents, hasMore } = await stored().dashboards.page(request.workspace, page);
    return { dashboards: documents.map(recordOf), ...membersAfter(documents.at(-1), hasMore) };
  });
  app.post<Parts>('/dashboards', described(options, DASHBOARD.create), async (request, reply) => {
    const dashboard = parseRequest(newDashboardSchema, request);
    const { dashboards } = stored();
    await requireViews(stored(), request.workspace, dashboard, []);
    const created = await dashboards.create(request.workspace, dashboard);
    return await reply.status(201).send(await withViews(stored(), created));
  });
  app.get<Parts>(
    '/dashboards/:id',
    { ...options, config: { forLinks: true, admission: DOCUMENT, describe: DASHBOARD.get } },
    async (request) => {
      refuseParameters(request.query);
      return await withViews(stored(), await stored().dashboards.find(request.workspace, request.params.id));
    },
  );
  app.patch<Parts>('/dashboards/:id', described(options, DASHBOARD.change), async (request) => {
    const change = parseRequest(dashboardChangeSchema, request);
    const { dashboards } = stored();
    const { workspace, params } = request;
    const dashboard = await dashboards.change(workspace, params.id, async (before) => {
      const after = changed<Dashboard>(before, change);
      if (change.tiles) await requireViews(stored(), workspace, after, before.tiles);
      return after;
    });
    return await withViews(stored(), dashboard);
  });
  // It revokes its links.
  const revoking = { ...options, config: { admission: REVOCATION, describe: DASHBOARD.remove } };
  app.delete<Parts>('/dashboards/:id', revoking, async (request, reply) => {
    refuseParameters(request.query);
    const { dashboards, links, linkKeys } = stored();
    const dashboard = await dashboards.find(request.workspace, request.params.id);
    await links.delete(await linksOf(stored(), dashboard));
    linkKeys.forget();
    await dashboards.delete([dashboard]);
    return await reply.status(204).send();
  });
}

function registerTiles(app: FastifyInstance, stored: Stored, reports: StoredReports): void {
  const path = '/dashboards/:id/tiles/:view';
  const config = { forLinks: true, admission: DOCUMENT, describe: describeTile };
  app.get<Parts>(path, { ...options, config }, async (request, reply) => {
    const { range } = parseRange(request.query);
    const { views, dashboards } = stored();
    const { id, view: viewId } = request.params;
    const { content } = await dashboards.find(request.workspace, id);
    if (!content.tiles.some(({ view }) => view === viewId.toLowerCase())) {
      throw new Problem('not_found', 'The dashboard has no such view.');
    }
    const { content: view } = await views.find(request.workspace, viewId);
    const { query, errors } = viewQuery(inRange(view, range), new Date());
    refuseErrors(errors);
    const known = await stored().segments.inQuery(request.workspace, query);
    // Its queries have slots of their own.
    request.releaseSlot();
    return await reports[view.report].respond(known, request, reply);
  });
}

const tileParameters = {
  range: rangeParameter.meta({
    description: 'The time up to now, in place of the range of the view: a number with `h`, `d` or `m`.',
    example: '7d',
  }),
};

/** @throws {Problem} `invalid_request`, naming every error */
function parseRange(query: QueryParameters): { readonly range?: string | undefined } {
  const { values, errors } = parseParameters(tileParameters, { fields: {}, documents: [] }, query);
  refuseErrors(errors);
  return values;
}

function registerLinks(app: FastifyInstance, stored: Stored): void {
  const adminOptions = { ...options, config: { scope: 'admin', admission: DOCUMENT } } as const;
  app.get<Parts>('/dashboards/:id/links', described(adminOptions, describeLinks), async (request) => {
    refuseParameters(request.query);
    const dashboard = await stored().dashboards.find(request.workspace, request.params.id);
    return { links: (await linksOf(stored(), dashboard)).map(linkRecord) };
  });
  app.post<Parts>('/dashboards/:id/links', described(adminOptions, describeNewLink), async (request, reply) => {
    const { name } = parseRequest(newLinkSchema, request);
    const { dashboards, links, linkKeys } = stored();
    const { id } = await dashboards.find(request.workspace, request.params.id);
    const key = generateLinkKey();
    const link = { name, dashboard: id, hash: hashKey(key) };
    const created = await links.create(request.workspace, link, id);
    linkKeys.forget();
    return await reply.status(201).send({ ...linkRecord(created), key });
  });
  const revoking = { scope: 'admin', admission: REVOCATION, describe: describeRevocation } as const;
  app.delete<Parts>('/dashboards/:id/links/:link', { ...options, config: revoking }, async (request, reply) => {
    refuseParameters(request.query);
    const { links, linkKeys } = stored();
    const { workspace, params } = request;
    const link = await links.find(workspace, params.link);
    if (link.content.dashboard !== params.id.toLowerCase()) {
      throw new Problem('not_found', 'The dashboard has no such link.');
    }
    await links.delete([link]);
    linkKeys.forget();
    return await reply.status(204).send();
  });
}

/** @throws {Problem} `invalid_request`, naming every error */
function parseRequest<Output>(
  schema: z.ZodType<Output>,
  { query, body }: { readonly query: QueryParameters; readonly body: unknown },
): Output {
  refuseParameters(query);
  return parseBody(schema, body);
}

/**
 * Views that a dashboard had before may be deleted meanwhile.
 *
 * @throws {Problem} `invalid_request`, naming each tile whose view the workspace does not have
 */
async function requireViews(
  { views }: Views,
  workspace: string,
  { tiles }: Dashboard,
  before: Dashboard['tiles'],
): Promise<void> {
  const found = await views.heads(workspace, viewsOf(tiles));
  const known = new Set<string | undefined>([...viewsOf(before), ...found.map(({ view }) => view), undefined]);
  refuseErrors(
    tiles.flatMap(({ view }, index): InputError[] =>
      known.has(view) ? [] : [{ path: `tiles.${index}.view`, code: 'invalid', message: 'is no view of the workspace' }],
    ),
  );
}

/** Returns a dashboard with what a tile needs of its view; `null` of one that was deleted, and of a note. */
async function withViews({ views }: Views, dashboard: StoredDocument<Dashboard>) {
  const { tiles } = dashboard.content;
  const found = await views.heads(dashboard.workspace, viewsOf(tiles));
  const byId = new Map<string | undefined, ViewHead>(found.map((head) => [head.view, head]));
  return {
    ...recordOf(dashboard),
    tiles: tiles.map(({ view, note = null, width }) => {
      const { name = null, report = null, form = null } = byId.get(view) ?? {};
      return { view: view ?? null, note, width, name, report, form };
    }),
  };
}

async function linksOf({ links }: Views, { workspace, id }: StoredDocument<Dashboard>) {
  return (await links.page(workspace, { limit: LINKS_MAX, dashboard: id })).documents;
}

function linkRecord(link: StoredDocument<Link>) {
  const { id, name, createdAt } = recordOf(link);
  return { id, name, createdAt };
}

const schemas = once(() => {
  const document = { id: z.uuid(), name: z.string(), createdAt: z.iso.datetime() };
  const changedAt = z.iso.datetime();
  const width = z.int().min(1).max(2);

  const view = z
    .object({ ...document, report: z.enum(REPORTS), parameters: z.record(z.string(), z.string()), changedAt })
    .meta({ id: 'View' });

  const storedDashboard = z
    .object({
      ...document,
      tiles: z.array(z.object({ view: z.uuid().optional(), note: z.string().optional(), width })),
      changedAt,
    })
    .meta({ id: 'StoredDashboard' });

  const dashboard = z
    .object({
      ...document,
      tiles: z.array(
        z.object({
          view: z.uuid().nullable().meta({ description: '`null`: the tile is a note.' }),
          note: z.string().nullable().meta({ description: 'The text of a note; `null`: the tile is a view.' }),
          width,
          name: z.string().nullable().meta({ description: 'That of the view; `null`: the view was deleted.' }),
          report: z.enum(REPORTS).nullable(),
          form: z.string().nullable().meta({ description: 'How the view draws its numbers, if it says so.' }),
        }),
      ),
      changedAt,
    })
    .meta({ id: 'Dashboard' });

  const link = z.object(document).meta({ id: 'DashboardLink' });
  const key = z.string().meta({
    description: 'The key of the link. It is shown only in this response.',
    example: 'vk_2sV8Jq1xq0mT6cZb4nYk9LwR3uEoHfGd5aPiXtNv7CM',
  });
  const linkWithKey = link.extend({ key }).meta({ id: 'DashboardLinkWithKey' });

  const rows = z.string().meta({ description: 'Of a view of SQL: a JSON object for each row.' });
  const numbers = z
    .union([seriesSchema(), funnelSchema(), retentionSchema(), valuesSchema()])
    .meta({ description: 'As the report of the view responds.' });
  return { view, storedDashboard, dashboard, link, linkWithKey, numbers, rows };
});

const gone = { 204: { description: 'It is deleted.' } };
const withKey = { keyOptional: false } as const;
const ofAdmin = { ...withKey, scope: 'admin' } as const;

function pathOf(...names: readonly string[]) {
  return { path: z.object(Object.fromEntries(names.map((name) => [name, z.string()]))) };
}

const describing = describer({ tag: 'views', codes: ['views_not_available', 'store_unavailable', 'overloaded'] });

/** A list of documents, and what a response with all of them has in it, and one with one of them. */
interface DescribedList {
  /** `view` */
  readonly name: string;
  readonly max: number;
  readonly listed: () => z.ZodType;
  readonly shown: () => z.ZodType;
  readonly created: z.ZodType;
  readonly change: z.ZodType;
}

/** Describes the operations of a list of documents. */
function describeDocuments({ name, max, listed, shown, created, change }: DescribedList) {
  const [plural, title] = [`${name}s`, `${name[0]?.toUpperCase()}${name.slice(1)}`];
  const found = () => ({ 200: jsonResponse(`The ${name}.`, shown()) });
  return {
    list: describing(`list${title}s`, `${title}s of the workspace`, () => ({
      description: 'A page ends after a mebibyte, too.',
      requestParams: { query: z.object(wholeListParameters) },
      responses: {
        200: jsonResponse('A page, oldest first.', z.object({ [plural]: z.array(listed()), ...pageMembers })),
      },
    })),
    create: describing(`create${title}`, `Save a ${name}`, () => ({
      ...withKey,
      description: `Everybody of the workspace sees it. A workspace can have ${new Intl.NumberFormat('en').format(max)} ${plural}.`,
      requestBody: jsonBody(created),
      responses: { 201: jsonResponse(`The ${name}.`, shown()) },
      codes: BODY_CODES,
    })),
    get: describing(`get${title}`, `A ${name}`, () => ({
      requestParams: pathOf('id'),
      responses: found(),
      codes: ['not_found'],
    })),
    change: describing(`change${title}`, `Change a ${name}`, () => ({
      requestParams: pathOf('id'),
      ...withKey,
      description: 'What the body leaves out stays as it is. Of changes at once, the last one counts.',
      requestBody: jsonBody(change),
      responses: found(),
      codes: ['not_found', ...BODY_CODES],
    })),
    remove: describing(`delete${title}`, `Delete a ${name}`, () => ({
      requestParams: pathOf('id'),
      ...withKey,
      responses: gone,
      codes: ['not_found'],
    })),
  };
}

const VIEW = describeDocuments({
  ...{ name: 'view', max: VIEWS_MAX, listed: () => schemas().view, shown: () => schemas().view },
  ...{ created: newViewSchema, change: viewChangeSchema },
});

const DASHBOARD = describeDocuments({
  ...{ name: 'dashboard', max: DASHBOARDS_MAX },
  ...{ listed: () => schemas().storedDashboard, shown: () => schemas().dashboard },
  ...{ created: newDashboardSchema, change: dashboardChangeSchema },
});

const describeTile = describing('getTile', 'The numbers of a tile', () => ({
  description: `The report that the view stores, with its range as it is now, or with another one; of a view of SQL the rows as NDJSON, for the range of the statement, of at most a mebibyte. The key of a link may read this and \`GET /dashboards/{id}\`, of its dashboard, and nothing else. A dashboard has at most ${TILES_MAX} tiles.`,
  requestParams: { ...pathOf('id', 'view'), query: z.object(tileParameters) },
  responses: {
    200: {
      description: 'The numbers.',
      content: {
        'application/json': { schema: schemas().numbers },
        [SQL_FORMATS.ndjson.mediaType]: { schema: schemas().rows },
      },
    },
  },
  codes: ['not_found', 'query_too_expensive', 'invalid_sql', 'sql_not_available'],
}));

const describeLinks = describing('listDashboardLinks', 'Links to a dashboard', () => ({
  ...ofAdmin,
  requestParams: pathOf('id'),
  responses: {
    200: jsonResponse('All of them, oldest first, without their keys.', z.object({ links: z.array(schemas().link) })),
  },
  codes: ['not_found'],
}));

const describeNewLink = describing('createDashboardLink', 'Create a read-only link to a dashboard', () => ({
  ...ofAdmin,
  description: `Returns a key that reads this dashboard and nothing else, until the link is deleted. A dashboard can have ${LINKS_MAX} links.`,
  requestParams: pathOf('id'),
  requestBody: jsonBody(newLinkSchema),
  responses: { 201: jsonResponse('The link, with its key.', schemas().linkWithKey) },
  codes: ['not_found', ...BODY_CODES],
}));

const describeRevocation = describing('deleteDashboardLink', 'Revoke a link', () => ({
  ...ofAdmin,
  description: 'Its key is refused at once by the instance that responds, and within five seconds by others.',
  requestParams: pathOf('id', 'link'),
  responses: gone,
  codes: ['not_found'],
}));
