import type { PathDescriptions } from '@sluice/shared/http/openapi';
import { z } from 'zod';
import { eventFilters } from '../events/events-openapi.ts';
import { querySchema } from '../filters/filters-openapi.ts';
import type { CommonDescription } from '../openapi-schemas.ts';
import { exportParameters } from './export-parameters.ts';

const file = z.string().meta({ description: 'The file, as it is written.' });

/** Describes `GET /events/export`. */
export function exportPaths(common: CommonDescription): PathDescriptions {
  return {
    '/events/export': {
      get: {
        ...common,
        operationId: 'exportEvents',
        summary: 'All events that match, as a file',
        description:
          'Of one state of time, without a limit on rows. NDJSON has a record of `GET /events` in each line, and CSV the fields of a record as columns; both end with a line that says that all was sent: `{"complete":true,"events":12}` and `#complete,12`. When something fails, the connection breaks off without it. `after` continues behind the last record that came. Parquet has the same columns as CSV.',
        tag: 'events',
        requestParams: { query: querySchema(exportParameters, eventFilters, ['startDate']) },
        responses: {
          200: {
            description: 'All events that match.',
            content: {
              'application/x-ndjson': { schema: file },
              'text/csv': { schema: file },
              'application/vnd.apache.parquet': { schema: file },
            },
          },
        },
      },
    },
  };
}
