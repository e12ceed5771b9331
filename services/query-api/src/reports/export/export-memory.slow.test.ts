import { expect, inject, test } from 'vitest';
import { startQuery } from '../../testing/query-service.ts';

test('the largest events are exported and sampled within little memory, in every format and in both orders', async () => {
  const small = await startQuery(inject('clickhouseUrl'), { QUERY_MEMORY_BYTES_MAX: String(128 * 1_024 * 1_024) });
  try {
    // Parts whose events alternate: ClickHouse merges them.
    for (let part = 0; part < 4; part += 1) {
      await small.clickHouse.command({
        query: `INSERT INTO events (workspace_id, timestamp, uuid, event, properties, received_at)
          SELECT 'a', fromUnixTimestamp64Milli({start:Int64} + number * 4 + {part:UInt8}), generateUUIDv4(number), 'e',
            concat('{"text":"', repeat('x', 200000), '"}'), now64(6)
          FROM numbers(150)`,
        query_params: { start: Date.UTC(2026, 0, 1), part },
        clickhouse_settings: { max_block_size: '50' },
      });
    }
    for (const { format, direction, end } of [
      { format: 'ndjson', direction: 'ASC', end: '{"complete":true,"events":600}\n' },
      { format: 'csv', direction: 'DESC', end: '#complete,600\n' },
      { format: 'parquet', direction: 'DESC', end: 'PAR1' },
    ]) {
      const url = `/events/export?startDate=2026-01-01&format=${format}&orderByDirection=${direction}`;
      const { statusCode, rawPayload } = await small.app.inject({ url, headers: { authorization: 'Bearer a' } });
      expect([format, statusCode, rawPayload.toString('latin1', rawPayload.length - end.length)]).toEqual([
        ...[format, 200, end],
      ]);
    }
    const { status, body } = await small.get('/events/properties');
    expect([status, body.results]).toMatchObject([200, [{ path: 'properties.text', share: 1 }]]);
  } finally {
    await small.stop();
  }
});
