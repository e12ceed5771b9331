import { ENTRY_POINT_PATH } from '@sluice/shared/http/entry-point';
import type { OperationDescription, PathDescriptions } from '@sluice/shared/http/openapi';
import { z } from 'zod';

const describeService = ENTRY_POINT_PATH['/']?.get as OperationDescription;

/** Describes the console, and that `GET /` sends browsers to it. */
export const CONSOLE_PATHS: PathDescriptions = {
  '/': {
    get: {
      ...describeService,
      responses: {
        ...describeService.responses,
        302: { description: 'To the console, for a request that accepts `text/html`.' },
      },
    },
  },
  '/console': {
    get: {
      operationId: 'openConsole',
      summary: 'A page to look at events, charts, users and organizations',
      description: 'See docs/guide/console.md.',
      tag: 'operation',
      responses: {
        200: {
          description: 'The page, at `/console/`.',
          content: { 'text/html': { schema: z.string(), example: '<!doctype html>' } },
        },
        302: { description: 'From `/console` to `/console/`.' },
        304: { description: 'The page is the one that `If-None-Match` names.' },
      },
      codes: ['not_found'],
    },
  },
  '/console/{file}': {
    get: {
      operationId: 'readConsolePart',
      summary: 'A file of the console',
      tag: 'operation',
      requestParams: { path: z.object({ file: z.string() }) },
      responses: {
        200: {
          description: 'A script, a style sheet or an icon. Its name changes with its content.',
          content: {
            'text/javascript': { schema: z.string(), example: 'render()' },
            'text/css': { schema: z.string(), example: 'body{}' },
            'image/svg+xml': { schema: z.string(), example: '<svg/>' },
          },
        },
      },
      codes: ['not_found'],
    },
  },
};
