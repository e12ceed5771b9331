import { type InputError, invalidRequest, Problem } from '@sluice/shared/http/problem';
import type { QueryParameters } from '@sluice/shared/http/query-string';
import { hashKey } from '@sluice/shared/keys/keys-file';
import type { FastifyInstance } from 'fastify';
import type { z } from 'zod';
import { acceptJson } from '../../http/request-memory.ts';
import { refuseErrors, refuseParameters } from '../../records/filters/parameters.ts';
import { PAGE_BYTES, parseWholeList } from '../../records/filters/whole-lists.ts';
import type { ReadDependencies } from '../../store/read-route.ts';
import type { Admission } from '../../store/request-slots.ts';
import type { StoredDocument } from './console-documents.ts';
import { changed, recordOf } from './document-operations.ts';
import { generateLinkKey } from './link-keys.ts';
import { type StoredReport, storedReports } from './stored-reports.ts';
import {
  type Dashboard,
  dashboardChangeSchema,
  LINKS_MAX,
  type Link,
  newDashboardSchema,
  newLinkSchema,
  newViewSchema,
  type Report,
  VIEW_BODY_BYTES_MAX,
  type View,
  viewChangeSchema,
} from './view.ts';
import { requireReport, viewQuery } from './view-query.ts';
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

/**
 * Registers the routes of views, dashboards and links.
 *
 * @param views default: they are off, and each route says so
 */
export function registerViews(app: FastifyInstance, deps: ReadDependencies, views: Views | undefined): void {
  app.register(async (routes) => {
    acceptJson(routes, VIEW_BODY_BYTES_MAX);
    const reports = storedReports(deps);
    const stored = () => {
      if (views) return views;
      throw new Problem('views_not_available', 'Saved views are off; the operator can turn them on.');
    };
    registerSavedViews(routes, stored, reports);
    registerDashboards(routes, stored);
    registerTiles(routes, stored, reports);
    registerLinks(routes, stored);
  });
}

type Reports = Readonly<Record<Report, StoredReport>>;

const options = { bodyLimit: VIEW_BODY_BYTES_MAX, config: { admission: DOCUMENT } };
const listOptions = { ...options, config: { admission: LIST } };

function registerSavedViews(app: FastifyInstance, stored: Stored, reports: Reports): void {
  app.get<Parts>('/views', listOptions, async (request) => {
    const { membersAfter, ...page } = parseWholeList(request.query, ['views', request.workspace]);
    const { documents, hasMore } = await stored().views.page(request.workspace, page);
    return { views: documents.map(recordOf), ...membersAfter(documents.at(-1), hasMore) };
  });
  app.post<Parts>('/views', options, async (request, reply) => {
    const view = parseBody(newViewSchema, request);
    requireReport(view, reports[view.report].parse);
    return await reply.status(201).send(recordOf(await stored().views.create(request.workspace, view)));
  });
  app.get<Parts>('/views/:id', options, async (request) => {
    refuseParameters(request.query);
    return recordOf(await stored().views.find(request.workspace, request.params.id));
  });
  app.patch<Parts>('/views/:id', options, async (request) => {
    const change = parseBody(viewChangeSchema, request);
    const { views } = stored();
    const { workspace, params } = request;
    const view = await views.change(workspace, params.id, async (before) => {
      const after = changed<View>(before, change);
      if (change.report ?? change.parameters) requireReport(after, reports[after.report].parse);
      return after;
    });
    return recordOf(view);
  });
  app.delete<Parts>('/views/:id', options, async (request, reply) => {
    refuseParameters(request.query);
    const { views } = stored();
    await views.delete([await views.find(request.workspace, request.params.id)]);
    return await reply.status(204).send();
  });
}

function registerDashboards(app: FastifyInstance, stored: Stored): void {
  app.get<Parts>('/dashboards', listOptions, async (request) => {
    const { membersAfter, ...page } = parseWholeList(request.query, ['dashboards', request.workspace]);
    const { documents, hasMore } = await stored().dashboards.page(request.workspace, page);
    return { dashboards: documents.map(recordOf), ...membersAfter(documents.at(-1), hasMore) };
  });
  app.post<Parts>('/dashboards', options, async (request, reply) => {
    const dashboard = parseBody(newDashboardSchema, request);
    const { dashboards } = stored();
    await requireViews(stored(), request.workspace, dashboard, []);
    const created = await dashboards.create(request.workspace, dashboard);
    return await reply.status(201).send(await withViews(stored(), created));
  });
  app.get<Parts>(
    '/dashboards/:id',
    { ...options, config: { forLinks: true, admission: DOCUMENT } },
    async (request) => {
      refuseParameters(request.query);
      return await withViews(stored(), await stored().dashboards.find(request.workspace, request.params.id));
    },
  );
  app.patch<Parts>('/dashboards/:id', options, async (request) => {
    const change = parseBody(dashboardChangeSchema, request);
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
  app.delete<Parts>('/dashboards/:id', { ...options, config: { admission: REVOCATION } }, async (request, reply) => {
    refuseParameters(request.query);
    const { dashboards, links, linkKeys } = stored();
    const dashboard = await dashboards.find(request.workspace, request.params.id);
    await links.delete(await linksOf(stored(), dashboard));
    linkKeys.forget();
    await dashboards.delete([dashboard]);
    return await reply.status(204).send();
  });
}

function registerTiles(app: FastifyInstance, stored: Stored, reports: Reports): void {
  const path = '/dashboards/:id/tiles/:view';
  app.get<Parts>(path, { ...options, config: { forLinks: true, admission: DOCUMENT } }, async (request, reply) => {
    refuseParameters(request.query);
    const { views, dashboards } = stored();
    const { id, view: viewId } = request.params;
    const { content } = await dashboards.find(request.workspace, id);
    if (!content.tiles.some(({ view }) => view === viewId.toLowerCase())) {
      throw new Problem('not_found', 'The dashboard has no such view.');
    }
    const { content: view } = await views.find(request.workspace, viewId);
    const { query, errors } = viewQuery(view, new Date());
    refuseErrors(errors);
    // Its queries have slots of their own.
    request.releaseSlot();
    return await reports[view.report].respond(query, request, reply);
  });
}

function registerLinks(app: FastifyInstance, stored: Stored): void {
  const config = { scope: 'admin', admission: DOCUMENT } as const;
  app.get<Parts>('/dashboards/:id/links', { ...options, config }, async (request) => {
    refuseParameters(request.query);
    const dashboard = await stored().dashboards.find(request.workspace, request.params.id);
    return { links: (await linksOf(stored(), dashboard)).map(linkRecord) };
  });
  app.post<Parts>('/dashboards/:id/links', { ...options, config }, async (request, reply) => {
    const { name } = parseBody(newLinkSchema, request);
    const { dashboards, links, linkKeys } = stored();
    const { id } = await dashboards.find(request.workspace, request.params.id);
    const key = generateLinkKey();
    const link = { name, dashboard: id, hash: hashKey(key) };
    const created = await links.create(request.workspace, link, id);
    linkKeys.forget();
    return await reply.status(201).send({ ...linkRecord(created), key });
  });
  const revoking = { ...config, admission: REVOCATION };
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
function parseBody<Output>(
  schema: z.ZodType<Output>,
  { query, body }: { readonly query: QueryParameters; readonly body: unknown },
): Output {
  refuseParameters(query);
  const result = schema.safeParse(body);
  if (!result.success) throw invalidRequest(result.error.issues);
  return result.data;
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
  const known = new Set([
    ...before.map(({ view }) => view),
    ...(
      await views.heads(
        workspace,
        tiles.map(({ view }) => view),
      )
    ).map(({ view }) => view),
  ]);
  refuseErrors(
    tiles.flatMap(({ view }, index): InputError[] =>
      known.has(view) ? [] : [{ path: `tiles.${index}.view`, code: 'invalid', message: 'is no view of the workspace' }],
    ),
  );
}

/** Returns a dashboard with what a tile needs of its view; `null` of one that was deleted. */
async function withViews({ views }: Views, dashboard: StoredDocument<Dashboard>) {
  const { tiles } = dashboard.content;
  const found = await views.heads(
    dashboard.workspace,
    tiles.map(({ view }) => view),
  );
  const byId = new Map(found.map((head) => [head.view, head]));
  return {
    ...recordOf(dashboard),
    tiles: tiles.map(({ view, width }) => {
      const { name = null, report = null, form = null } = byId.get(view) ?? {};
      return { view, width, name, report, form };
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
