// Switches tracing on in a service: node --import …/register.mjs services/writer/src/main.ts, or by NODE_OPTIONS.
// NODE_OPTIONS reaches every Node.js process, such as npm, health checks and commands. They load nothing here, and npm
// may be older than this project's Node.js: hence JavaScript.
import { realpathSync } from 'node:fs';

const [, service] = /\/services\/(ingest-api|writer|query-api)\/src\/main\.ts$/.exec(mainScript()) ?? [];
if (service !== undefined) (await import('./sdk.ts')).startSdk(service);

/** The script that this process runs; empty when it runs none. */
function mainScript() {
  try {
    return realpathSync(process.argv[1] ?? '');
  } catch {
    return '';
  }
}
