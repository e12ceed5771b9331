import { Readable } from 'node:stream';
import { createLogger } from '@sluice/shared/base/log';
import { type ClickHouseClient, createClickHouse } from '@sluice/shared/clickhouse/client';
import { migrate } from '@sluice/shared/clickhouse/migrate';
import { rowJson } from '../data/event.ts';
import { ROWS_PER_MESSAGE } from '../data/rows.ts';

const DATABASE = 'straight';
const ROWS_PER_INSERT = 50_000;

/** Inserts rows straight into a table like `events`, as a program would that guarantees nothing. */
export class StraightInserts implements AsyncDisposable {
  readonly #client: ClickHouseClient;
  #next = 0;

  static async start(url: string): Promise<StraightInserts> {
    const config = {
      CLICKHOUSE_URL: url,
      CLICKHOUSE_DATABASE: DATABASE,
      CLICKHOUSE_USER: 'default',
      CLICKHOUSE_PASSWORD: '',
    };
    await migrate(config, createLogger('bench', 'warn'));
    const options = { application: 'bench', requestTimeoutMs: 60_000, connectionsMax: 1 };
    return new StraightInserts(createClickHouse(config, options));
  }

  private constructor(client: ClickHouseClient) {
    this.#client = client;
  }

  async insert(rows: number): Promise<void> {
    for (let left = rows; left > 0; left -= ROWS_PER_INSERT) {
      const values = Readable.from(this.#chunks(Math.min(left, ROWS_PER_INSERT)), { objectMode: false });
      const { stream } = await this.#client.exec({ query: 'INSERT INTO events FORMAT JSONEachRow', values });
      for await (const _ of stream);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client.close();
  }

  *#chunks(rows: number): Generator<Buffer> {
    for (const end = this.#next + rows; this.#next < end; ) {
      let text = '';
      const last = Math.min(this.#next + ROWS_PER_MESSAGE, end);
      for (; this.#next < last; this.#next += 1) text += `${rowJson(this.#next)}\n`;
      yield Buffer.from(text);
    }
  }
}
