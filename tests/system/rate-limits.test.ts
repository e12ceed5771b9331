import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startIngest } from '@sluice/ingest-api/testing/ingest';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { expect, inject, test } from 'vitest';
import { runImporter } from '../kit/importer.ts';

test('an import over the rate of its key takes its time, and everything arrives once', async () => {
  await using dir = await makeTempDir();
  const file = join(dir.path, 'lines.ndjson');
  const line = (index: number) => ({
    foreignUserGroupId: 'acme',
    events: [{ event: `a${index}` }, { event: `b${index}` }],
  });
  await writeFile(file, Array.from({ length: 120 }, (_, index) => `${JSON.stringify(line(index))}\n`).join(''));
  const ingest = await startIngest(inject('kafkaBrokers'), { RATE_LIMIT_DEFAULT: '50' });
  try {
    const url = await ingest.app.listen({ host: '127.0.0.1', port: 0 });
    const startedAt = performance.now();
    const { code, output } = await runImporter(['--url', url, '--give-up-after', '1', file], 'ingest-only');
    expect(output).toContain('120 submissions with 240 events were accepted');
    expect(code).toBe(0);
    // 100 of the 240 events may come at once.
    expect(performance.now() - startedAt).toBeGreaterThan(2_500);
    const rows = (await ingest.read('events', 240)).flatMap((message) => message.rows);
    expect([rows.length, new Set(rows.map(({ event }) => event)).size]).toEqual([240, 240]);
    expect((await ingest.app.inject('/metrics')).body).toMatch(/^sluice_http_rate_limited_requests_total [1-9]/m);
  } finally {
    await ingest.stop();
  }
});
