import type { OpenApiDocument } from '@sluice/shared/http/openapi';
import { connectReader, startApp } from './query-service.ts';

/** Returns the OpenAPI document, of an app that never reads. */
export async function readDocument(): Promise<OpenApiDocument> {
  const { app, stop } = await startApp({ CLICKHOUSE_URL: 'http://localhost' }, (config) => ({
    source: { reader: connectReader(config) },
    readiness: async () => [],
  }));
  try {
    return (await app.inject('/openapi.json')).json();
  } finally {
    await stop();
  }
}
