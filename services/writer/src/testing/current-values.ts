import { countsSql, DECIDING } from '@sluice/shared/clickhouse/property-versions';
import type { TestStore } from './store.ts';

/** What decides the property of users, as query-api finds it. An organization counts as one who was never deleted. */
export async function currentValues(db: TestStore, ids: readonly string[]): Promise<ReadonlyMap<string, unknown>> {
  const list = ids.map((id) => `'${id}'`).join(', ');
  const deletions = `(SELECT (groupArray(user_id), groupArray(deleted)) FROM (
    SELECT user_id, max(version) AS deleted FROM user_deletions WHERE user_id IN (${list}) GROUP BY user_id))`;
  const deleted = `if(kind = 'user',
    transform(id, arrayPushFront(${deletions}.1, ''), arrayPushFront(${deletions}.2, 0), toUInt64(0)), 0)`;
  const found = await db.read<{ id: string; operation: string; value: string }>(`
    SELECT id, winner.2.operation AS operation, winner.2.value AS value
    FROM (
      SELECT id, ${DECIDING} AS winner FROM entity_properties
      WHERE workspace_id = 'test' AND id IN (${list}) AND ${countsSql(deleted)} GROUP BY id
    )`);
  return new Map(found.flatMap(({ id, operation, value }) => (operation === 'set' ? [[id, JSON.parse(value)]] : [])));
}
