import { eventually } from '@sluice/shared/testing/eventually';
import fc, { sample } from '@sluice/shared/testing/fast-check';
import { expectInTime, until } from '@sluice/shared/testing/until';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { DEAR_STATEMENTS, PLANNED_KINDS } from '../testing/dear-sql.ts';
import { HOSTILE_STATEMENTS } from '../testing/hostile-sql.ts';
import { anEvent } from '../testing/query-service.ts';
import { outcomeOf } from '../testing/refused-functions.ts';
import { ask, heldSlots, running } from '../testing/running-sql.ts';
import { type SqlService, startSql } from '../testing/sql-service.ts';

let service: SqlService;

beforeAll(async () => {
  service = await startSql({
    ...{ QUERY_TIMEOUT_MS: '400', QUERY_MEMORY_BYTES_MAX: '200000000', QUERY_THREADS_MAX: '3' },
    ...{ REPORT_CONNECTIONS_MAX: '4', REPORT_CONCURRENCY_PER_WORKSPACE: '1', SQL_RESULT_ROWS_MAX: '10000' },
  });
  await service.store('h', [anEvent({ userId: 'other' })]);
});
afterAll(() => service.stop());

test('of two hundred dear statements nothing runs three seconds after the answer, and another workspace is served', async () => {
  const choices = fc.tuple(fc.constantFrom(...PLANNED_KINDS), fc.integer({ min: 3, max: 120 }));
  const random = sample(choices, 200 - DEAR_STATEMENTS.length).map(([statement, size]) => statement(size));
  const left = [...DEAR_STATEMENTS, ...random];
  expect(left).toHaveLength(200);
  let dearRuns = true;
  const others = (async () => {
    for (; dearRuns; await new Promise((resolve) => setTimeout(resolve, 100))) {
      // It may be late for its own time limit where the machine is busy.
      const { status, code } = await ask(service, 'SELECT user_id FROM events', 'h');
      expect([200, 400]).toContain(status);
      if (status === 400) expect(code).toBe('query_too_expensive');
    }
  })();
  const slowest = { sql: '', ms: 0 };
  const worker = async (workspace: string) => {
    for (let sql = left.shift(); sql !== undefined; sql = left.shift()) {
      const { status, code, requestId } = await ask(service, sql, workspace);
      expect([200, 400, 503], sql).toContain(status);
      if (status === 503) expect(code, sql).toBe('overloaded');
      const answeredAt = performance.now();
      await until(
        `ClickHouse no longer runs ${sql.slice(0, 100)}`,
        async () => (await running(service, requestId)) === 0 || undefined,
      );
      const ms = performance.now() - answeredAt;
      if (ms > slowest.ms) Object.assign(slowest, { sql, ms });
    }
  };
  await Promise.all(['a', 'b', 'c'].map(worker)).finally(() => {
    dearRuns = false;
  });
  await others;
  await eventually(() => heldSlots(service)).toBe(0);
  expectInTime(`the end of ${slowest.sql.slice(0, 100)}`, slowest.ms, 3_000);
}, 300_000);

test('each bomb is refused, or ends with its time or memory', async () => {
  const limits = { QUERY_TIMEOUT_MS: '3000', QUERY_MEMORY_BYTES_MAX: '200000000', SQL_RESULT_ROWS_MAX: '10000' };
  const bombed = await startSql(limits);
  onTestFinished(() => bombed.stop());
  // Some fill what is between the times of events.
  await bombed.store('a', [anEvent({ timestampMs: Date.now() })]);
  const bombs = HOSTILE_STATEMENTS['bombs'] ?? [];
  expect(bombs.length).toBeGreaterThan(10);
  for (const [outcome, sql] of bombs) expect([sql, (await outcomeOf(bombed, sql)).outcome]).toEqual([sql, outcome]);
});
