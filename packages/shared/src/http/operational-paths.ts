import { z } from 'zod';
import { ENTRY_POINT_PATH } from './entry-point.ts';
import type { PathDescriptions } from './openapi.ts';
import { REFERENCE_FILES } from './reference.ts';

const WARNINGS = z.array(z.string()).optional();

/** The operations that every service has, for its OpenAPI document. */
export const OPERATIONAL_PATHS: PathDescriptions = {
  ...ENTRY_POINT_PATH,
  '/livez': {
    get: {
      operationId: 'checkLiveness',
      summary: 'Whether the process runs',
      tag: 'operation',
      responses: {
        200: {
          description: 'The process runs.',
          content: { 'application/json': { schema: z.object({ status: z.literal('ok') }), example: { status: 'ok' } } },
        },
      },
    },
  },
  '/readyz': {
    get: {
      operationId: 'checkReadiness',
      summary: 'Whether the service can do its work',
      tag: 'operation',
      responses: {
        200: {
          description:
            'The service is ready; `warnings`, if there are any, say what its operator should change all the same.',
          content: {
            'application/json': {
              schema: z.object({ status: z.literal('ok'), warnings: WARNINGS }),
              example: { status: 'ok' },
            },
          },
        },
        503: {
          description: 'The service is not ready; `missing` says why.',
          content: {
            'application/json': {
              schema: z.object({ status: z.literal('unavailable'), missing: z.array(z.string()), warnings: WARNINGS }),
              example: { status: 'unavailable', missing: ['the service is stopping'] },
            },
          },
        },
      },
    },
  },
  '/metrics': {
    get: {
      operationId: 'readMetrics',
      summary: 'Metrics in the text format of Prometheus',
      tag: 'operation',
      responses: {
        200: {
          description: 'The metrics.',
          content: { 'text/plain': { schema: z.string(), example: 'process_cpu_user_seconds_total 0.123\n' } },
        },
      },
    },
  },
  '/openapi.json': {
    get: {
      operationId: 'readDescription',
      summary: 'This document',
      tag: 'operation',
      responses: {
        200: {
          description: 'An OpenAPI 3.1 document.',
          content: {
            'application/json': {
              schema: z.looseObject({ openapi: z.string().regex(/^3\.1\.\d+$/) }),
              example: { openapi: '3.1.0', info: { title: 'API', version: '1.0.0' }, paths: {} },
            },
          },
        },
      },
    },
  },
  '/docs': {
    get: {
      operationId: 'browseDescription',
      summary: 'A page to browse this document',
      tag: 'operation',
      responses: {
        200: {
          description: 'The page.',
          content: { 'text/html': { schema: z.string(), example: '<!doctype html>' } },
        },
      },
    },
  },
  '/docs/{file}': {
    get: {
      operationId: 'readPagePart',
      summary: 'A file of the page',
      tag: 'operation',
      requestParams: { path: z.object({ file: z.enum(Object.keys(REFERENCE_FILES) as [string, ...string[]]) }) },
      responses: {
        200: {
          description: 'A style sheet, a script or an icon.',
          content: {
            'text/css': { schema: z.string(), example: '.swagger-ui{}' },
            'text/javascript': { schema: z.string(), example: 'SwaggerUIBundle({})' },
            'image/png': {},
          },
        },
      },
      codes: ['not_found'],
    },
  },
};

/** The tag of {@link OPERATIONAL_PATHS}. */
export const OPERATIONAL_TAG = {
  name: 'operation',
  description: 'Health, metrics and this document; no key needed',
};
