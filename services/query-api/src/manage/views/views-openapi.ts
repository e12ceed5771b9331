import type { OperationDescription, PathDescriptions } from '@sluice/shared/http/openapi';
import { z } from 'zod';
import type { CommonDescription } from '../../http/openapi-schemas.ts';
import { pageMembers, wholeListParameters } from '../../records/filters/whole-lists.ts';
import { funnelSchema } from '../../reports/funnel/funnel-openapi.ts';
import { valuesSchema } from '../../reports/menus/menus-openapi.ts';
import { retentionSchema } from '../../reports/retention/retention-openapi.ts';
import { seriesSchema } from '../../reports/series/series-openapi.ts';
import {
  DASHBOARDS_MAX,
  dashboardChangeSchema,
  LINKS_MAX,
  newDashboardSchema,
  newLinkSchema,
  newViewSchema,
  REPORTS,
  TILES_MAX,
  VIEWS_MAX,
  viewChangeSchema,
} from './view.ts';

const document = { id: z.uuid(), name: z.string(), createdAt: z.iso.datetime() };
const changedAt = z.iso.datetime();
const width = z.int().min(1).max(2);

const viewSchema = z
  .object({ ...document, report: z.enum(REPORTS), parameters: z.record(z.string(), z.string()), changedAt })
  .meta({ id: 'View' });

const storedDashboardSchema = z
  .object({ ...document, tiles: z.array(z.object({ view: z.uuid(), width })), changedAt })
  .meta({ id: 'StoredDashboard' });

const dashboardSchema = z
  .object({
    ...document,
    tiles: z.array(
      z.object({
        view: z.uuid(),
        width,
        name: z.string().nullable().meta({ description: 'That of the view; `null`: the view was deleted.' }),
        report: z.enum(REPORTS).nullable(),
        form: z.string().nullable().meta({ description: 'How the view draws its numbers, if it says so.' }),
      }),
    ),
    changedAt,
  })
  .meta({ id: 'Dashboard' });

const linkSchema = z.object(document).meta({ id: 'DashboardLink' });
const key = z.string().meta({
  description: 'The key of the link. It is shown only in this response.',
  example: 'vk_2sV8Jq1xq0mT6cZb4nYk9LwR3uEoHfGd5aPiXtNv7CM',
});
const linkWithKeySchema = linkSchema.extend({ key }).meta({ id: 'DashboardLinkWithKey' });

const numbersSchema = z
  .union([seriesSchema, funnelSchema, retentionSchema, valuesSchema])
  .meta({ description: 'As the report of the view responds.' });

const json = (description: string, schema: z.ZodType) => ({
  description,
  content: { 'application/json': { schema } },
});
const body = (schema: z.ZodType) => ({ required: true, content: { 'application/json': { schema } } });
const gone = { 204: { description: 'It is deleted.' } };

const BODY_CODES = ['malformed_json', 'body_too_large', 'unsupported_media_type'] as const;

/** The operations of a list, and those of one of its documents. */
interface Described {
  /** `view` */
  readonly name: string;
  readonly max: number;
  /** What the response with all of them has in its list, and what a response with one is. */
  readonly listed: z.ZodType;
  readonly shown: z.ZodType;
  readonly created: z.ZodType;
  readonly change: z.ZodType;
}

type Given = Pick<OperationDescription, 'responses'> & Partial<OperationDescription>;

function operationsOf(common: CommonDescription) {
  return (operationId: string, summary: string, { codes = [], ...given }: Given): OperationDescription => ({
    ...{ ...common, tag: 'views', operationId, summary },
    ...given,
    codes: ['views_not_available', 'store_unavailable', 'overloaded', ...codes],
  });
}

const withKey = { keyOptional: false } as const;
const ofAdmin = { ...withKey, scope: 'admin' } as const;

function pathOf(...names: readonly string[]) {
  return { path: z.object(Object.fromEntries(names.map((name) => [name, z.string()]))) };
}

/** Describes the routes of a list. */
function documentPaths(
  common: CommonDescription,
  { name, max, listed, shown, created, change }: Described,
): PathDescriptions {
  const operation = operationsOf(common);
  const [plural, title] = [`${name}s`, `${name[0]?.toUpperCase()}${name.slice(1)}`];
  const one = { requestParams: pathOf('id') };
  return {
    [`/${plural}`]: {
      get: operation(`list${title}s`, `${title}s of the workspace`, {
        description: 'A page ends after a mebibyte, too.',
        requestParams: { query: z.object(wholeListParameters) },
        responses: { 200: json('A page, oldest first.', z.object({ [plural]: z.array(listed), ...pageMembers })) },
      }),
      post: operation(`create${title}`, `Save a ${name}`, {
        ...withKey,
        description: `Everybody of the workspace sees it. A workspace can have ${new Intl.NumberFormat('en').format(max)} ${plural}.`,
        requestBody: body(created),
        responses: { 201: json(`The ${name}.`, shown) },
        codes: BODY_CODES,
      }),
    },
    [`/${plural}/{id}`]: {
      get: operation(`get${title}`, `A ${name}`, {
        ...one,
        responses: { 200: json(`The ${name}.`, shown) },
        codes: ['not_found'],
      }),
      patch: operation(`change${title}`, `Change a ${name}`, {
        ...one,
        ...withKey,
        description: 'What the body leaves out stays as it is. Of changes at once, the last one counts.',
        requestBody: body(change),
        responses: { 200: json(`The ${name}.`, shown) },
        codes: ['not_found', ...BODY_CODES],
      }),
      delete: operation(`delete${title}`, `Delete a ${name}`, {
        ...one,
        ...withKey,
        responses: gone,
        codes: ['not_found'],
      }),
    },
  };
}

/** Describes the routes of saved views, dashboards and links. */
export function viewPaths(common: CommonDescription): PathDescriptions {
  const operation = operationsOf(common);
  return {
    ...documentPaths(common, {
      ...{ name: 'view', max: VIEWS_MAX, listed: viewSchema, shown: viewSchema },
      ...{ created: newViewSchema, change: viewChangeSchema },
    }),
    ...documentPaths(common, {
      ...{ name: 'dashboard', max: DASHBOARDS_MAX, listed: storedDashboardSchema, shown: dashboardSchema },
      ...{ created: newDashboardSchema, change: dashboardChangeSchema },
    }),
    '/dashboards/{id}/tiles/{view}': {
      get: operation('getTile', 'The numbers of a tile', {
        description: `The report that the view stores, with its range as it is now. The key of a link may read this and \`GET /dashboards/{id}\`, of its dashboard, and nothing else. A dashboard has at most ${TILES_MAX} tiles.`,
        requestParams: pathOf('id', 'view'),
        responses: { 200: json('The numbers.', numbersSchema) },
        codes: ['not_found', 'query_too_expensive'],
      }),
    },
    '/dashboards/{id}/links': {
      get: operation('listDashboardLinks', 'Links to a dashboard', {
        ...ofAdmin,
        requestParams: pathOf('id'),
        responses: {
          200: json('All of them, oldest first, without their keys.', z.object({ links: z.array(linkSchema) })),
        },
        codes: ['not_found'],
      }),
      post: operation('createDashboardLink', 'Create a read-only link to a dashboard', {
        ...ofAdmin,
        description: `Returns a key that reads this dashboard and nothing else, until the link is deleted. A dashboard can have ${LINKS_MAX} links.`,
        requestParams: pathOf('id'),
        requestBody: body(newLinkSchema),
        responses: { 201: json('The link, with its key.', linkWithKeySchema) },
        codes: ['not_found', ...BODY_CODES],
      }),
    },
    '/dashboards/{id}/links/{link}': {
      delete: operation('deleteDashboardLink', 'Revoke a link', {
        ...ofAdmin,
        description: 'Its key is refused at once by the instance that responds, and within five seconds by others.',
        requestParams: pathOf('id', 'link'),
        responses: gone,
        codes: ['not_found'],
      }),
    },
  };
}
