// npm run dead-letters: what the writer could not store, of the system that npm start runs or of the one that
// KAFKA_BROKERS and CLICKHOUSE_URL name. `npm run dead-letters -- --help` tells more.
import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';

const root = join(import.meta.dirname, '..');
const dataDir = resolve(root, process.env['SLUICE_DATA_DIR'] || '.sluice');

process.env['KAFKA_BROKERS'] ||= `127.0.0.1:${process.env['KAFKA_PORT'] || 4092}`;
if (!process.env['CLICKHOUSE_URL']) {
  process.env['CLICKHOUSE_URL'] = `http://127.0.0.1:${process.env['CLICKHOUSE_PORT'] || 4123}`;
  process.env['CLICKHOUSE_USER'] = 'sluice';
  process.env['CLICKHOUSE_PASSWORD'] = (
    await readFile(join(dataDir, 'clickhouse-password'), 'utf8').catch(() => '')
  ).trim();
}
await import('../services/writer/src/dead-letters/main.ts');
