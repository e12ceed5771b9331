import { Readable } from 'node:stream';
import { createClickHouse } from '@sluice/shared/clickhouse/client';
import { migrate } from '@sluice/shared/clickhouse/migrate';
import { createLogger } from '@sluice/shared/log';
import { rowJson } from './event.ts';
import { ROWS_PER_MESSAGE } from './rows.ts';

const DATABASE = 'straight';
const ROWS_PER_INSERT = 50_000;

/** Inserts rows straight into a table like `events`, as a program would that guarantees nothing. */
export interface StraightInserts extends AsyncDisposable {
  insert(rows: number): Promise<void>;
}

export async function startStraightInserts(url: string): Promise<StraightInserts> {
  const config = {
    CLICKHOUSE_URL: url,
    CLICKHOUSE_DATABASE: DATABASE,
    CLICKHOUSE_USER: 'default',
    CLICKHOUSE_PASSWORD: '',
  };
  await migrate(config, createLogger('bench', 'warn'));
  const client = createClickHouse(config, { application: 'bench', requestTimeoutMs: 60_000, connectionsMax: 1 });
  let next = 0;

  function* chunks(rows: number): Generator<Buffer> {
    for (const end = next + rows; next < end; ) {
      let text = '';
      for (const last = Math.min(next + ROWS_PER_MESSAGE, end); next < last; next += 1) text += `${rowJson(next)}\n`;
      yield Buffer.from(text);
    }
  }

  return {
    async insert(rows) {
      for (let left = rows; left > 0; left -= ROWS_PER_INSERT) {
        const values = Readable.from(chunks(Math.min(left, ROWS_PER_INSERT)), { objectMode: false });
        const { stream } = await client.exec({ query: 'INSERT INTO events FORMAT JSONEachRow', values });
        for await (const _ of stream);
      }
    },
    async [Symbol.asyncDispose]() {
      await client.close();
    },
  };
}
