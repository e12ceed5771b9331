import { until } from '../../testing/until.ts';
import type { ClickHouseClient } from '../client.ts';

const NO_SUCH_DATA_PART = '232';

/**
 * Merges the parts of a table until each of its partitions has one. A single OPTIMIZE … FINAL is not enough: while a merge is
 * running in a partition, ClickHouse leaves that partition and those after it as they are, and succeeds. A part of which
 * every row was removed is dropped: it has no projections, so ClickHouse does not merge it with others, and may take
 * minutes to remove it.
 */
export async function mergeParts(client: ClickHouseClient, table: string): Promise<void> {
  await until(`one part for each partition of ${table}`, async () => {
    for (const { name } of (await partsOf(client, table)).filter(({ rows }) => rows === 0)) {
      const query = 'ALTER TABLE {table:Identifier} DROP PART {name:String}';
      await client.command({ query, query_params: { table, name } }).catch((error) => {
        // ClickHouse has removed it meanwhile.
        if (error.code !== NO_SUCH_DATA_PART) throw error;
      });
    }
    await client.command({ query: 'OPTIMIZE TABLE {table:Identifier} FINAL', query_params: { table } });
    const parts = await partsOf(client, table);
    return parts.length === new Set(parts.map(({ partition_id }) => partition_id)).size;
  });
}

interface Part {
  readonly name: string;
  readonly partition_id: string;
  readonly rows: number;
}

async function partsOf(client: ClickHouseClient, table: string): Promise<Part[]> {
  const result = await client.query({
    query: `SELECT name, partition_id, rows FROM system.parts
      WHERE database = currentDatabase() AND table = {table:String} AND active`,
    query_params: { table },
    format: 'JSONEachRow',
  });
  return await result.json<Part>();
}
