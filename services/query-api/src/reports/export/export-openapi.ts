import type { PathDescriptions } from '@sluice/shared/http/openapi';
import { z } from 'zod';
import type { CommonDescription } from '../../http/openapi-schemas.ts';
import { eventFilters } from '../../records/events/events-openapi.ts';
import { querySchema } from '../../records/filters/filters-openapi.ts';
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
          'All filters have to match. There is no limit on events, bytes or time. Events that become visible after the export began may be in it or not; none is left out or comes twice. When it fails after it began, the connection breaks off: continue with `after`.',
        tag: 'events',
        requestParams: { query: querySchema(exportParameters, eventFilters) },
        responses: { 200: { description: 'The events, in order.', content } },
      },
    },
  };
}
