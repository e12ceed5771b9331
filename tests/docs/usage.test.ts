import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { PINNED_SETTINGS } from '@sluice/shared/clickhouse/settings';
import { takeDatabase } from '@sluice/shared/clickhouse/testing/test-database';
import { inherited } from '@sluice/shared/testing/inherited';
import { expect, inject, test } from 'vitest';
import { readClickHouse } from '../kit/clickhouse.ts';
import { docExamples } from '../kit/doc-examples.ts';

const text = await readFile(new URL('../../docs/operate/usage.md', import.meta.url), 'utf8');
const examples = docExamples(text);

const CLIENT =
  'docker compose exec clickhouse clickhouse-client --user sluice --password sluice --database sluice --query';

/** The books of an hour, as an audit stores them: those of a later one count. */
interface Books {
  readonly workspace_id: string;
  readonly hour: string;
  readonly accepted: number;
  readonly repeats?: number;
  readonly kind?: string;
}

test('every example of docs/operate/usage.md is a command with its output', async () => {
  expect(examples).toHaveLength(text.split('```sh\n').length - 1);
  const url = inject('clickhouseUrl');
  const { config, release } = await takeDatabase(url);
  const database = config.CLICKHOUSE_DATABASE;
  const settings = new URLSearchParams({ ...PINNED_SETTINGS, database });
  try {
    const store = async (audit: number, books: readonly Books[]) => {
      const rows = books.map((row) => JSON.stringify({ kind: 'events', audited_at: audit, ...row })).join('\n');
      await readClickHouse(url, `INSERT INTO audited_hours FORMAT JSONEachRow ${rows}`, { database });
    };
    const acme = { workspace_id: 'acme', hour: '2026-03-01 00:00:00' };
    await store(1, [
      { ...acme, accepted: 999 },
      { ...acme, accepted: 70, kind: 'changes' },
      { ...acme, hour: '2026-03-31 23:00:00', accepted: 300, repeats: 50 },
      { ...acme, hour: '2026-04-01 00:00:00', accepted: 2_000 },
      { workspace_id: 'initech', hour: '2026-03-05 12:00:00', accepted: 40 },
    ]);
    await store(2, [{ ...acme, accepted: 1_100, repeats: 100 }]);
    for (const { command, output } of examples) {
      expect(command).toContain(CLIENT);
      const script = command.replace(CLIENT, `curl -s "${url}/?${settings}" --data-binary`);
      const { stdout } = await promisify(execFile)('sh', ['-c', script], { env: inherited() });
      expect(stdout.trim()).toBe(output);
    }
  } finally {
    await release();
  }
});
