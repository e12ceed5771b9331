import { expect, inject, test } from 'vitest';
import { readClickHouse } from '../kit/clickhouse.ts';
import { ownClickHouse } from '../kit/engines.ts';
import { startPipeline } from '../kit/pipeline.ts';
import { whileRefusing } from '../kit/while-refusing.ts';

const kafkaBrokers = inject('kafkaBrokers');

test('no memory left: the writer waits until there is some, nothing is lost or doubled', async () => {
  await using clickhouse = await ownClickHouse({ memoryBytesMax: 1.5 * 1_024 ** 3 });
  const { url } = clickhouse;
  await using running = await startPipeline({ kafkaBrokers, clickhouseUrl: url, name: 'memory' });
  await readClickHouse(url, 'CREATE TABLE hog (text String) ENGINE = Memory');
  await whileRefusing(running, url, /memory limit exceeded/i, {
    async begin() {
      for (const mebibytes of [64, 8, 1]) {
        const sql = `INSERT INTO hog SELECT randomString(1048576) FROM numbers(${mebibytes}) SETTINGS max_block_size = 1`;
        for (let taken = true; taken; ) {
          const response = await fetch(url, { method: 'POST', body: sql });
          taken = response.ok;
          if (!taken) expect(await response.text()).toMatch(/MEMORY_LIMIT_EXCEEDED/);
        }
      }
    },
    // A statement that drops the table needs memory too, and there is none. What it held is gone after a start.
    cease: () => clickhouse.restart(),
  });
});
