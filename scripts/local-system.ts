import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';

/** Sets the addresses of the system that npm start runs in the environment, unless it names others. */
export async function useLocalSystem(): Promise<void> {
  const dataDir = resolve(import.meta.dirname, '..', process.env['SLUICE_DATA_DIR'] || '.sluice');
  process.env['KAFKA_BROKERS'] ||= `127.0.0.1:${process.env['KAFKA_PORT'] || 4092}`;
  if (process.env['CLICKHOUSE_URL']) return;
  process.env['CLICKHOUSE_URL'] = `http://127.0.0.1:${process.env['CLICKHOUSE_PORT'] || 4123}`;
  process.env['CLICKHOUSE_USER'] = 'sluice';
  process.env['CLICKHOUSE_PASSWORD'] = (
    await readFile(join(dataDir, 'clickhouse-password'), 'utf8').catch(() => '')
  ).trim();
}
