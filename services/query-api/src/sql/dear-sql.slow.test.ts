import { eventually } from '@sluice/shared/testing/eventually';
import { until } from '@sluice/shared/testing/until';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { anEvent } from '../testing/query-service.ts';
import { ask, heldSlots, running } from '../testing/running-sql.ts';
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
});
afterAll(() => service.stop());

test('a statement that goes on after its answer keeps its slot until ClickHouse no longer runs it', async () => {
  // Each element is compared with all of them, in one block.
  const sql = 'SELECT arraySum(arrayMap(x -> indexOf(range(30000), x + 30000), range(30000)))';
  const { status, requestId } = await ask(service, sql, 'a');
  expect(status).toBe(400);
  await until('it has ended', async () => {
    const before = await running(service, requestId);
    const held = await heldSlots(service);
    const isSeen = before > 0 && (await running(service, requestId)) > 0;
    if (isSeen) expect(held).toBe(1);
    return before === 0 || undefined;
  });
  await eventually(() => heldSlots(service)).toBe(0);
}, 120_000);

test('a statement of a client may take what the variables say', async () => {
  // Those that only explain it may return more rows.
  const query = `SELECT toJSONString(Settings) AS settings FROM system.processes
    WHERE startsWith(query_id, 'query-api/sql/') AND match(query, '^SELECT.*the limited one')`;
  const settings = await until('the statement to be seen while it runs', async () => {
    let hasEnded = false;
    // It runs until its time is up.
    const sql = "SELECT count() FROM numbers(800000000) WHERE sipHash64(toString(number), 'the limited one') = 7";
    const asked = ask(service, sql, 'a').then(() => {
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
