import type { PathDescriptions } from '@sluice/shared/http/openapi';
import { z } from 'zod';
import { eventFilters } from '../events/events-openapi.ts';
import { querySchema } from '../filters/filters-openapi.ts';
import type { CommonDescription } from '../openapi-schemas.ts';
import { exportParameters } from './export-parameters.ts';

const file = z.string().meta({ description: 'The file, as it is written.' });
import { EXPORT_FORMATS, type ExportFormat } from './export-formats.ts';
import { exportParameters } from './export-parameters.ts';

const DESCRIPTIONS: Readonly<Record<ExportFormat, string>> = {
  ndjson:
    'A line for each event: its record, as `GET /events` has it. The last line is `{"complete":true,"events":N}`: without it, the response was cut off.',
  csv: 'RFC 4180, with a line of names first. `properties`, `context` and `traits` are JSON text, a missing identifier is an empty field. The last line is `#complete,N`: without it, the response was cut off.',
  parquet: 'The same columns. Times are timestamps in UTC, a missing identifier is null.',
};

const content = Object.fromEntries(
  Object.entries(EXPORT_FORMATS).map(([name, { mediaTypes }]) => [
    mediaTypes[0],
    { schema: z.string().meta({ description: DESCRIPTIONS[name as ExportFormat] }) },
  ]),
);

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
          'All filters have to match. There is no limit on events, bytes or time. Events that become visible after the export began may be in it or not; none is left out or comes twice. When it fails after it began, the connection breaks off: continue with `after`.',
        tag: 'events',
        requestParams: { query: querySchema(exportParameters, eventFilters) },
        responses: { 200: { description: 'The events, in order.', content } },
      },
    },
  };
}
