import { randomUUID } from 'node:crypto';
import { eventually } from '@sluice/shared/testing/eventually';
import fc, { sample } from '@sluice/shared/testing/fast-check';
import { expectInTime, until } from '@sluice/shared/testing/until';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { DEAR_STATEMENTS, PLANNED_KINDS } from '../testing/dear-sql.ts';
import { anEvent } from '../testing/query-service.ts';
import { type SqlService, startSql } from '../testing/sql-service.ts';

const BUDGETS = {
  ...{ QUERY_TIMEOUT_MS: '400', QUERY_MEMORY_BYTES_MAX: '200000000', SQL_RESULT_ROWS_MAX: '10000' },
  ...{ QUERY_RESULT_BYTES_MAX: '300000002', QUERY_BYTES_READ_MAX: '40000000003' },
  ...{ QUERY_ROWS_READ_MAX: '900000004', QUERY_THREADS_MAX: '3' },
};

let service: SqlService;

beforeAll(async () => {
  service = await startSql({ ...BUDGETS, REPORT_CONNECTIONS_MAX: '4', REPORT_CONCURRENCY_PER_WORKSPACE: '1' });
  await service.store('a', [anEvent({ userId: 'jane' })]);
  await service.store('h', [anEvent({ userId: 'other' })]);
});
afterAll(() => service.stop());

interface Answer {
  readonly status: number;
  readonly code: string | undefined;
  readonly requestId: string;
}

async function ask(sql: string, workspace: string): Promise<Answer> {
  const requestId = randomUUID();
  const response = await service.app
    .inject({
      ...{ method: 'POST', url: '/queries', payload: { sql, format: 'ndjson' } },
      headers: { authorization: `Bearer sql-${workspace}`, 'x-request-id': requestId },
    })
    // One whose time is up after its first rows breaks off.
    .catch((error: Error) => {
      if (error.message !== 'response destroyed before completion') throw error;
    });
  const { statusCode, body } = response ?? { statusCode: 200, body: '' };
  return { status: statusCode, code: statusCode === 200 ? undefined : JSON.parse(body).code, requestId };
}

/** Returns how many statements of a request ClickHouse runs; of all requests by default. */
async function running(requestId = ''): Promise<number> {
  const query = `SELECT count() AS n FROM system.processes WHERE startsWith(query_id, {beginning:String})`;
  const query_params = { beginning: `query-api/sql/${requestId}` };
  const result = await service.clickHouse.query({ query, query_params, format: 'JSONEachRow' });
  return Number((await result.json<{ n: number }>())[0]?.n);
}

async function heldSlots(): Promise<number> {
  const { body } = await service.app.inject({ url: '/metrics' });
  return Number(/^sluice_queries\{pool="reports",state="running"\} (\d+)$/m.exec(body)?.[1]);
}

test('of two hundred dear statements nothing runs three seconds after the answer, and another workspace is served', async () => {
  const choices = fc.tuple(fc.constantFrom(...PLANNED_KINDS), fc.integer({ min: 3, max: 120 }));
  const random = sample(choices, 200 - DEAR_STATEMENTS.length).map(([statement, size]) => statement(size));
  const left = [...DEAR_STATEMENTS, ...random];
  expect(left).toHaveLength(200);
  let dearRuns = true;
  const others = (async () => {
    for (; dearRuns; await new Promise((resolve) => setTimeout(resolve, 100))) {
      // It may be late for its own time limit where the machine is busy.
      const { status, code } = await ask('SELECT user_id FROM events', 'h');
      expect([200, 400]).toContain(status);
      if (status === 400) expect(code).toBe('query_too_expensive');
    }
  })();
  const slowest = { sql: '', ms: 0 };
  const worker = async (workspace: string) => {
    for (let sql = left.shift(); sql !== undefined; sql = left.shift()) {
      const { status, code, requestId } = await ask(sql, workspace);
      expect([200, 400, 503], sql).toContain(status);
      if (status === 503) expect(code, sql).toBe('overloaded');
      const answeredAt = performance.now();
      await until(
        `ClickHouse no longer runs ${sql.slice(0, 100)}`,
        async () => (await running(requestId)) === 0 || undefined,
      );
      const ms = performance.now() - answeredAt;
      if (ms > slowest.ms) Object.assign(slowest, { sql, ms });
    }
  };
  await Promise.all(['a', 'b', 'c'].map(worker)).finally(() => {
    dearRuns = false;
  });
  await others;
  await eventually(heldSlots).toBe(0);
  expectInTime(`the end of ${slowest.sql.slice(0, 100)}`, slowest.ms, 3_000);
}, 300_000);

test('a statement that goes on after its answer keeps its slot until ClickHouse no longer runs it', async () => {
  // Each element is compared with all of them, in one block.
  const sql = 'SELECT arraySum(arrayMap(x -> indexOf(range(30000), x + 30000), range(30000)))';
  const { status, requestId } = await ask(sql, 'a');
  expect(status).toBe(400);
  await until('it has ended', async () => {
    const before = await running(requestId);
    const held = await heldSlots();
    const isSeen = before > 0 && (await running(requestId)) > 0;
    if (isSeen) expect(held).toBe(1);
    return before === 0 || undefined;
  });
  await eventually(heldSlots).toBe(0);
}, 120_000);

test('a statement of a client may take what the variables say', async () => {
  // Those that only explain it may return more rows.
  const query = `SELECT toJSONString(Settings) AS settings FROM system.processes
    WHERE startsWith(query_id, 'query-api/sql/') AND match(query, '^SELECT.*the limited one')`;
  const settings = await until('the statement to be seen while it runs', async () => {
    let hasEnded = false;
    // It runs until its time is up.
    const sql = "SELECT count() FROM numbers(800000000) WHERE sipHash64(toString(number), 'the limited one') = 7";
    const asked = ask(sql, 'a').then(() => {
      hasEnded = true;
    });
    let found: string | undefined;
    while (found === undefined && !hasEnded) {
      const result = await service.clickHouse.query({ query, format: 'JSONEachRow' });
      found = (await result.json<{ settings: string }>())[0]?.settings;
    }
    await asked;
    return found;
  });
  expect(JSON.parse(settings)).toMatchObject({
    ...{ max_execution_time: '0.4', max_memory_usage: BUDGETS.QUERY_MEMORY_BYTES_MAX },
    ...{ max_result_rows: BUDGETS.SQL_RESULT_ROWS_MAX, max_result_bytes: BUDGETS.QUERY_RESULT_BYTES_MAX },
    ...{ max_bytes_to_read: BUDGETS.QUERY_BYTES_READ_MAX, max_rows_to_read: BUDGETS.QUERY_ROWS_READ_MAX },
    max_threads: BUDGETS.QUERY_THREADS_MAX,
  });
});
