import { inject, test } from 'vitest';
import { readClickHouse } from '../kit/clickhouse.ts';
import { startPipeline } from '../kit/pipeline.ts';
import { whileRefusing } from '../kit/while-refusing.ts';

const kafkaBrokers = inject('kafkaBrokers');

test('too many parts: the writer waits until they are merged, nothing is lost or doubled', async () => {
  const clickhouseUrl = inject('clickhouseUrl');
  await using running = await startPipeline({ kafkaBrokers, clickhouseUrl, name: 'parts' });
  const table = `${running.database}.events`;
  await whileRefusing(running, clickhouseUrl, /Too many parts/, {
    async begin() {
      await readClickHouse(clickhouseUrl, `SYSTEM STOP MERGES ${table}`);
      await readClickHouse(clickhouseUrl, `ALTER TABLE ${table} MODIFY SETTING parts_to_throw_insert = 3`);
    },
    async cease() {
      await readClickHouse(clickhouseUrl, `ALTER TABLE ${table} RESET SETTING parts_to_throw_insert`);
      await readClickHouse(clickhouseUrl, `SYSTEM START MERGES ${table}`);
    },
  });
});
