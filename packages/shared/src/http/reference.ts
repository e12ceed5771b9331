import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import type { FastifyInstance } from 'fastify';
import { registerEntryPoint } from './entry-point.ts';
import type { OpenApiDocument } from './openapi.ts';
import { Problem } from './problem.ts';

/** The page loads everything from its own service, so it works without any other network. */
const CONTENT_SECURITY_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const { resolve } = createRequire(import.meta.url);

/** The files of the page. Those of the package swagger-ui-dist are read at the first request for them. */
export const REFERENCE_FILES: Readonly<
  Record<string, { readonly type: string; readonly read: () => Promise<Buffer | string> }>
> = {
  'swagger-ui.css': { type: 'text/css; charset=utf-8', read: packaged('swagger-ui.css') },
  'swagger-ui-bundle.js': { type: 'text/javascript; charset=utf-8', read: packaged('swagger-ui-bundle.js') },
  'favicon-32x32.png': { type: 'image/png', read: packaged('favicon-32x32.png') },
  'start.js': {
    type: 'text/javascript; charset=utf-8',
    read: async () => `SwaggerUIBundle({
  dom_id: '#swagger-ui',
  url: new URL('../openapi.json', document.currentScript.src).href,
  deepLinking: true,
  displayRequestDuration: true,
  validatorUrl: null,
});
`,
  },
};

/** Creates the OpenAPI document of a service. */
export type CreateDocument = () => Promise<OpenApiDocument>;

/**
 * Serves a service's OpenAPI document at `/openapi.json`, and a page to browse it at `/docs`; both need no key. The
 * document is created at the first request that needs it, and kept: most processes are never asked for it, and a start
 * would take a fifth longer.
 *
 * @param startPage where `GET /` sends a browser; see {@link registerEntryPoint}
 */
export function registerReference(app: FastifyInstance, create: CreateDocument, startPage?: string): void {
  const described = once(create);
  registerEntryPoint(app, async () => (await described()).title, startPage);
  registerPages(app, described);
}

/** {@link registerReference} without `GET /`. */
export function registerDocument(app: FastifyInstance, create: CreateDocument): void {
  registerPages(app, once(create));
}

type Described = () => Promise<{ readonly title: string; readonly text: string }>;

function once(create: CreateDocument): Described {
  let described: ReturnType<Described> | undefined;
  return async () => {
    described ??= create().then((document) => ({ title: document.info.title, text: JSON.stringify(document) }));
    try {
      return await described;
    } catch (error) {
      // A file that could not be opened, for want of descriptors, may be opened the next time.
      described = undefined;
      throw error;
    }
  };
}

function registerPages(app: FastifyInstance, described: Described): void {
  app.get('/openapi.json', async (_request, reply) => {
    const { text } = await described();
    reply.type('application/json; charset=utf-8');
    return await reply.send(text);
  });
  app.get('/docs', async (request, reply) => {
    const [path = ''] = request.url.split('?', 1);
    const { title } = await described();
    reply.headers({ 'content-security-policy': CONTENT_SECURITY_POLICY, 'x-content-type-options': 'nosniff' });
    reply.type('text/html; charset=utf-8');
    return await reply.send(page(title, path.endsWith('/') ? '' : 'docs/'));
  });
  app.get<{ Params: { file: string } }>('/docs/:file', async ({ params }, reply) => {
    const file = Object.hasOwn(REFERENCE_FILES, params.file) ? REFERENCE_FILES[params.file] : undefined;
    if (!file) throw new Problem('not_found', 'There is nothing here.');
    reply.headers({ 'cache-control': 'public, max-age=3600', 'x-content-type-options': 'nosniff' });
    reply.type(file.type);
    return await reply.send(await file.read());
  });
}

/** @param folder where the files of the page are, relative to the page */
function page(title: string, folder: string): string {
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>${title}</title>
    <link rel="icon" type="image/png" href="${folder}favicon-32x32.png">
    <link rel="stylesheet" href="${folder}swagger-ui.css">
  </head>
  <body>
    <div id="swagger-ui"></div>
    <noscript>This page needs JavaScript; the OpenAPI document is <a href="${folder === '' ? '../' : ''}openapi.json">openapi.json</a>.</noscript>
    <script src="${folder}swagger-ui-bundle.js"></script>
    <script src="${folder}start.js"></script>
  </body>
</html>
`;
}

/** Returns a function that reads a file of swagger-ui-dist once. */
function packaged(name: string): () => Promise<Buffer> {
  let content: Promise<Buffer> | undefined;
  return () => {
    content ??= readFile(resolve(`swagger-ui-dist/${name}`));
    return content;
  };
}
