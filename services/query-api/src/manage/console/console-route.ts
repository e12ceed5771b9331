import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { ENTRY_POINT_PATH } from '@sluice/shared/http/entry-point';
import type { OperationDescription, PathDescriptions } from '@sluice/shared/http/openapi';
import { Problem } from '@sluice/shared/http/problem';
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';

/** What `packages/console/scripts/build.ts` has built. */
const FOLDER = join(dirname(createRequire(import.meta.url).resolve('@sluice/console/package.json')), 'dist');

/** The page loads everything from query-api. uPlot and Preact set styles as properties, which needs no 'unsafe-inline'. */
const PAGE_HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-cache',
} as const;

/** The name of a file has a hash of its content. */
const FILE_HEADERS = {
  'x-content-type-options': 'nosniff',
  'cache-control': 'public, max-age=31536000, immutable',
} as const;

const FILE_NAME = /^[a-z]+-[0-9a-f]+\.(js|css|svg)$/;

const TYPES: Readonly<Record<string, string>> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
};

/** Where ingest-api listens unless it is told otherwise. */
const INGEST_PORT = '4000';

const DEFAULT_PORTS: Readonly<Record<string, string>> = { 'http:': '80', 'https:': '443' };

/** What the console is made from. */
interface ConsoleParts {
  /** Where ingest-apis listen, as query-api reaches them: the page says the port of the first. Default: that of a new one. */
  readonly ingestUrls?: readonly string[] | undefined;
  /** Default: where the package @sluice/console is built. */
  readonly folder?: string;
}

/**
 * Serves the console at `/console/` without a key: it asks for one. The files are read at each request, so that a build needs
 * no restart.
 */
export function registerConsole(app: FastifyInstance, { ingestUrls = [], folder = FOLDER }: ConsoleParts = {}): void {
  const ingestPort = ingestUrls.slice(0, 1).map(portOf)[0] ?? INGEST_PORT;
  app.get('/console', async (request, reply) => {
    const [path = ''] = request.url.split('?', 1);
    // The page names its files relative to itself, so that it works behind a proxy that adds a path.
    if (!path.endsWith('/')) return await reply.redirect('console/');
    const built = await readFile(join(folder, 'index.html'), 'utf8').catch(() => undefined);
    const page = built?.replace('{ingest-port}', ingestPort);
    if (page === undefined)
      throw new Problem('not_found', 'The console is not built: run node packages/console/scripts/build.ts.');
    const etag = `W/"${createHash('sha256').update(page).digest('hex')}"`;
    reply.headers({ ...PAGE_HEADERS, etag });
    if (request.headers['if-none-match'] === etag) return await reply.code(304).send();
    reply.type('text/html; charset=utf-8');
    return await reply.send(page);
  });

  app.get<{ Params: { file: string } }>('/console/:file', async ({ params }, reply) => {
    const [, extension = ''] = FILE_NAME.exec(params.file) ?? [];
    const file = extension === '' ? undefined : await readFile(join(folder, params.file)).catch(() => undefined);
    if (!file) throw new Problem('not_found', 'There is nothing here.');
    reply.headers(FILE_HEADERS).type(TYPES[extension] ?? '');
    return await reply.send(file);
  });
}

function portOf(url: string): string {
  const { port, protocol } = new URL(url);
  return port || (DEFAULT_PORTS[protocol] ?? INGEST_PORT);
}

/** Describes the console, and that `GET /` sends browsers to it. */
export function consolePaths(): PathDescriptions {
  const service = ENTRY_POINT_PATH['/']?.get as OperationDescription;
  return {
    '/': {
      get: {
        ...service,
        responses: {
          ...service.responses,
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
}
