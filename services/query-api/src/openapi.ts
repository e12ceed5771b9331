import { createApiDocument, type OpenApiDocument, type PathDescriptions } from '@sluice/shared/http/openapi';
import { OPERATIONAL_PATHS, OPERATIONAL_TAG } from '@sluice/shared/http/operational-paths';
import type { QueryConfig } from './config.ts';
import { LIMIT_MAX, NAME_DOTS_MAX, PROPERTY_FILTERS_MAX } from './http/limits.ts';
import { CONSOLE_PATHS } from './manage/console/console-openapi.ts';
import { deadLetterPaths } from './manage/dead-letters/dead-letters-openapi.ts';
import { keyPaths } from './manage/keys/keys-openapi.ts';
import { pipelinePaths } from './manage/pipeline/pipeline-openapi.ts';
import { viewPaths } from './manage/views/views-openapi.ts';
import { entityPaths } from './records/entities/entities-openapi.ts';
import { ENTITY_KINDS } from './records/entities/entity-kinds.ts';
import { eventPaths } from './records/events/events-openapi.ts';
import { reportPaths } from './reports/reports-openapi.ts';
import { sqlPaths } from './sql/sql-openapi.ts';
import { streamPaths } from './stream/stream-openapi.ts';
import { webhookPaths } from './webhooks/webhooks-openapi.ts';

/** Returns the OpenAPI document of query-api: its routes, with the limits that are in force. */
export function queryDocument(config: QueryConfig): OpenApiDocument {
  return createApiDocument({
    title: 'Sluice query API',
    description: `Serves stored events, users and organizations of one workspace.\n\n${limits(config)}`,
    tags: [
      { name: 'events', description: 'Events, with filters, order and pages' },
      { name: 'users', description: 'Users as they are now' },
      { name: 'organizations', description: 'Organizations as they are now' },
      { name: 'sql', description: 'SQL over events, users and organizations' },
      { name: 'webhooks', description: 'Events that are sent to addresses of the workspace' },
      { name: 'views', description: 'Saved views and dashboards of the workspace' },
      { name: 'pipeline', description: 'What is accepted, stored and refused' },
      { name: 'keys', description: 'API keys of the workspace' },
      { name: 'dead-letters', description: 'Rows that could not be stored, and calls that could not be taken' },
      OPERATIONAL_TAG,
    ],
    paths: { ...paths(config), ...OPERATIONAL_PATHS, ...CONSOLE_PATHS },
  });
}

function paths(config: QueryConfig): PathDescriptions {
  const common = {
    scope: 'query',
    keyOptional: config.QUERY_ANONYMOUS_WORKSPACE !== undefined,
    codes: ['query_too_expensive', 'store_unavailable', 'overloaded'],
  } as const;
  const entities = ENTITY_KINDS.map((kind) => entityPaths(kind, common));
  return {
    ...eventPaths(common),
    ...streamPaths(common, config),
    ...reportPaths(common),
    ...sqlPaths(common, config),
    ...webhookPaths(common, config),
    ...viewPaths(common),
    ...pipelinePaths(common),
    ...keyPaths(common),
    ...deadLetterPaths(common),
    ...Object.assign({}, ...entities),
  };
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
