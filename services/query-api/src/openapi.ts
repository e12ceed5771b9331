import {
  createApiDocument,
  type OpenApiDocument,
  type OperationDescription,
  type PathDescriptions,
} from '@sluice/shared/http/openapi';
import { OPERATIONAL_PATHS, OPERATIONAL_TAG } from '@sluice/shared/http/operational-paths';
import type { QueryConfig } from './config.ts';
import { type DescribedRoute, LIMIT_MAX, NAME_DOTS_MAX, PROPERTY_FILTERS_MAX } from './http/http.ts';
import { consolePaths } from './manage/manage.ts';

/** Returns the OpenAPI document of query-api: its routes, as they describe themselves, with the limits that are in force. */
export function queryDocument(config: QueryConfig, routes: readonly DescribedRoute[]): OpenApiDocument {
  return createApiDocument({
    title: 'Sluice query API',
    description: `Serves stored events, users and organizations of one workspace.\n\n${limits(config)}`,
    tags: [
      { name: 'events', description: 'Events, with filters, order and pages' },
      { name: 'users', description: 'Users as they are now' },
      { name: 'organizations', description: 'Organizations as they are now' },
      { name: 'segments', description: 'Users and organizations by what they have and did' },
      { name: 'sql', description: 'SQL over events, users and organizations' },
      { name: 'webhooks', description: 'Events that are sent to addresses of the workspace' },
      { name: 'alerts', description: 'Messages about the numbers of views and dashboards' },
      { name: 'views', description: 'Saved views and dashboards of the workspace' },
      { name: 'names', description: 'What users and organizations are called, and the search for them' },
      { name: 'properties', description: 'Properties of events that reports read from columns' },
      { name: 'pipeline', description: 'What is accepted, stored and refused' },
      { name: 'audits', description: 'Whether all that was accepted is accounted for' },
      { name: 'keys', description: 'API keys of the workspace' },
      { name: 'dead-letters', description: 'Rows that could not be stored, and calls that could not be taken' },
      { name: 'example-data', description: 'Something to look at before there are events' },
      OPERATIONAL_TAG,
    ],
    paths: { ...pathsOf(routes, config), ...OPERATIONAL_PATHS, ...consolePaths() },
  });
}

function pathsOf(routes: readonly DescribedRoute[], config: QueryConfig): PathDescriptions {
  const common = {
    scope: 'query',
    keyOptional: config.QUERY_ANONYMOUS_WORKSPACE !== undefined,
    codes: ['query_too_expensive', 'store_unavailable', 'overloaded'],
  } as const;
  const paths: Record<string, Record<string, OperationDescription>> = {};
  for (const { method, path, describe } of routes) {
    const operation = describe(common, config);
    const described = withNames(path, operation);
    paths[described] = { ...paths[described], [method.toLowerCase()]: operation };
  }
  return paths;
}

/** Names the parameters of a path as its operation does: `/users/:id` becomes `/users/{foreignId}`. */
function withNames(path: string, { requestParams }: OperationDescription): string {
  const names = Object.keys((requestParams?.path as { shape?: object } | undefined)?.shape ?? {});
  return path.replaceAll(/:\w+/g, () => `{${names.shift()}}`);
}

function limits(config: QueryConfig): string {
  const number = new Intl.NumberFormat('en');
  const rate = config.RATE_LIMIT_DEFAULT;
  const rows = config.QUERY_ROWS_READ_MAX;
  return `Unknown, repeated and malformed parameters are refused.

## Limits

| what | limit |
| --- | --- |
| records of a page | ${number.format(LIMIT_MAX)} |
| a query | ${number.format(config.QUERY_TIMEOUT_MS)} ms, ${number.format(config.QUERY_MEMORY_BYTES_MAX)} bytes of memory, ${number.format(config.QUERY_BYTES_READ_MAX)} bytes read${rows === undefined ? '' : `, ${number.format(rows)} rows left to read by its dates and indexes`} |
| queries of a workspace at once | ${number.format(config.QUERY_CONCURRENCY_PER_WORKSPACE)}; others wait for their turn |
| counting the total | ${number.format(config.COUNT_TIMEOUT_MS)} ms, then \`total\` is \`null\`, and at once for 30 times as long, a minute at most |
| filters on properties | ${PROPERTY_FILTERS_MAX}, of at most ${NAME_DOTS_MAX} dots each |
| a key without a rate limit of its own | ${rate === undefined ? 'none' : `${number.format(rate)} requests a second`} |

Reading without a key is ${config.QUERY_ANONYMOUS_WORKSPACE === undefined ? 'not allowed' : 'allowed, of one workspace'}. ${
    config.CORS_ORIGINS.length === 0
      ? 'Browsers on other origins may not read.'
      : `Browsers may read from: ${config.CORS_ORIGINS.join(', ')}.`
  }

Responses are compressed with zstd, Brotli or gzip, as \`Accept-Encoding\` says.`;
}
