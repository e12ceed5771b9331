import { mergeParts } from '@sluice/shared/clickhouse/testing/merge-parts';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import type { Statement } from '../../store/query.ts';
import { MeasuredRunner } from '../../testing/measured-runner.ts';
import { type QueryService, startQuery } from '../../testing/query-service.ts';
import { deadLettersQuery } from '../pipeline/pipeline-state.ts';
import { COUNTED_MAX, readDeadLetters, reasonsQuery } from './dead-letters-query.ts';

// What reads of dead letters make ClickHouse read of a few of them, and of many.

const WORKSPACES = { few: 5_000, many: 150_000, double: 300_000 };
type Workspace = keyof typeof WORKSPACES;

/** When the first one was recorded; the others follow, one a second. */
const FIRST_MS = Date.UTC(2026, 2, 1);

/** A page ends amid a granule, and so does what it begins after. */
const GRANULE = 8_192;

let query: QueryService;
let runner: MeasuredRunner;

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'));
  runner = new MeasuredRunner(query.clickHouse, query.config);
  for (const [workspace, rows] of Object.entries(WORKSPACES)) {
    await query.clickHouse.command({
      query: `INSERT INTO dead_letters (id, recorded_at, kind, format, topic, partition, offset, line, reason, row)
        SELECT hex(sipHash128(number, {workspace:String})), toDateTime64('2026-03-01', 3, 'UTC') + number, 'events', '1', 't', 0,
          number, 0, 'r', concat('{"workspace_id":"', {workspace:String}, '","event":"e"}')
        FROM numbers({rows:UInt64})`,
      query_params: { workspace, rows },
    });
  }
  await mergeParts(query.clickHouse, 'dead_letters');
});
afterAll(() => query.stop());

const reads = (workspace: Workspace) => (statement: Statement['statement']) =>
  runner.all({ statement, kind: 'dead_letters_page', workspace });

/** The rows that ClickHouse reads for a page that begins after so many dead letters of the workspace. */
async function pageCost(workspace: Workspace, before: number): Promise<number> {
  const recordedMs = FIRST_MS + (WORKSPACES[workspace] - before) * 1_000;
  const common = { replayed: undefined, kind: undefined, reason: undefined };
  const list = { ...common, after: before === 0 ? undefined : { recordedMs, id: '' } };
  const { rows } = await runner.measure(async () => {
    expect(await readDeadLetters(reads(workspace), list, 11)).toHaveLength(11);
  });
  return rows;
}

test.each([0, 2_500])('a page of dead letters after %i others reads as much of many as of few', async (before) => {
  // Each of the page's is looked up by its id besides, in a granule of its own at most.
  const most = 2 * GRANULE + 11 * GRANULE;
  expect(await pageCost('many', before)).toBeLessThanOrEqual(most);
  expect(await pageCost('double', before)).toBeLessThanOrEqual(most);
});

test('the reasons read the newest dead letters, as many of many as of twice as many', async () => {
  const all = { replayed: undefined, kind: undefined, limit: 10 };
  for (const workspace of ['many', 'double'] as const) {
    const { rows } = await runner.measure(async () => {
      const [row] = await reads(workspace)((tables) => reasonsQuery(tables, all));
      expect(row?.slice(2, 4)).toEqual(['r', COUNTED_MAX]);
    });
    // They are read for the reasons, and again to know whether these are all.
    expect(rows).toBeLessThanOrEqual(2 * (COUNTED_MAX + 2 * GRANULE));
  }
});

test.each(Object.entries(WORKSPACES) as [Workspace, number][])(
  'the numbers of dead letters read those of the workspace since they count alone: %s',
  async (workspace, all) => {
    for (const counted of [all, 2_000, 0]) {
      const fromMs = FIRST_MS + (all - counted) * 1_000;
      const { rows } = await runner.measure(async () => {
        const [row] = await reads(workspace)((tables) => deadLettersQuery(tables, fromMs));
        expect(row?.[0]).toBe(counted);
      });
      expect(rows).toBeLessThanOrEqual(counted + 2 * GRANULE);
    }
  },
);
