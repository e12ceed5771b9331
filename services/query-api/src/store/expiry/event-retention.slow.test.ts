import { mergeParts } from '@sluice/shared/clickhouse/testing/merge-parts';
import { expect, inject, onTestFinished, test } from 'vitest';
import { parseEventsRequest } from '../../records/events/events-parameters.ts';
import { countQuery, pageQuery } from '../../records/events/events-query.ts';
import { DAYS, HOURS, hourCountsQuery } from '../../reports/hour-counts.ts';
import { namesQuery } from '../../reports/menus/event-names.ts';
import { storeMany } from '../../testing/load.ts';
import { MeasuredRunner } from '../../testing/measured-runner.ts';
import { startQuery } from '../../testing/query-service.ts';
import { LOCAL_TABLES } from '../tables.ts';

test('a retention adds no rows to what pages and totals read, and counts are still answered by projections', async () => {
  const query = await startQuery(inject('clickhouseUrl'));
  onTestFinished(() => query.stop());
  const rows = 200_000;
  await storeMany(query, 'a', rows);
  await mergeParts(query.clickHouse, 'events');
  const newest = parseEventsRequest({}, 'a');
  const selection = { fields: [], properties: [], startMs: undefined, endMs: undefined };
  const keysOf = (start: string) => ({ event: 'event', day: start });
  const statements = {
    page: (tables: typeof LOCAL_TABLES) => pageQuery(tables, newest, undefined),
    total: (tables: typeof LOCAL_TABLES) => countQuery(tables, newest, undefined),
    days: (tables: typeof LOCAL_TABLES) => hourCountsQuery(tables, selection, keysOf, undefined, [DAYS, HOURS]),
    hours: (tables: typeof LOCAL_TABLES) => hourCountsQuery(tables, selection, keysOf, undefined, [HOURS]),
    names: (tables: typeof LOCAL_TABLES) =>
      namesQuery(tables, { selection, columns: ['event'], prefix: '', limit: 10 }, undefined),
  };
  const readBy = async (statement: (typeof statements)['page'], tables: typeof LOCAL_TABLES) => {
    const runner = new MeasuredRunner(query.clickHouse, query.config, tables);
    return (await runner.measure(() => runner.all({ statement, kind: 'events_page', workspace: 'a' }))).rows;
  };
  const keptTables = LOCAL_TABLES.keptFrom(Date.UTC(2026, 2, 2));
  for (const [name, statement] of Object.entries(statements)) {
    const [all, kept] = [await readBy(statement, LOCAL_TABLES), await readBy(statement, keptTables)];
    // A granule has up to 128 rows.
    expect(kept, name).toBeLessThanOrEqual(all + 128);
    expect(kept, name).toBeLessThan(rows / 100);
  }
});
