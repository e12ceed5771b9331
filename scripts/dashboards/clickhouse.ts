import type { DashboardDescription } from './dashboard.ts';
import { percentile, rate } from './expressions.ts';

/** ClickHouse, as the writers and query-api see it. Only several servers have names. */
export const clickhouse: DashboardDescription = {
  name: 'clickhouse',
  title: 'Sluice: ClickHouse',
  rows: [
    {
      title: 'Disk and parts',
      panels: [
        {
          title: 'Free disk',
          unit: 'bytes',
          queries: [
            { expr: 'min by (server, disk) (sluice_clickhouse_disk_free_bytes)', legend: '{{server}} {{disk}} free' },
            { expr: 'max by (server, disk) (sluice_clickhouse_disk_bytes)', legend: '{{server}} {{disk}} size' },
          ],
        },
        {
          title: 'Free share of the disk',
          description: 'SluiceClickHouseDiskFilling fires below 10 %.',
          unit: 'percentunit',
          queries: [
            {
              expr: 'min by (server, disk) (sluice_clickhouse_disk_free_bytes) / max by (server, disk) (sluice_clickhouse_disk_bytes)',
              legend: '{{server}} {{disk}}',
            },
          ],
        },
        {
          title: 'Parts of the fullest partition, as a share of the limit',
          description: 'At 1, ClickHouse refuses inserts. SluicePartsNearLimit fires above 0.5.',
          unit: 'percentunit',
          queries: [
            {
              expr: 'max by (server, table) (sluice_clickhouse_partition_parts) / min by (server, table) (sluice_clickhouse_partition_parts_limit)',
              legend: '{{server}} {{table}}',
            },
          ],
        },
        {
          title: 'Parts of the fullest partition',
          unit: 'short',
          queries: [
            { expr: 'max by (server, table) (sluice_clickhouse_partition_parts)', legend: '{{server}} {{table}}' },
          ],
        },
        {
          title: 'Mutations that wait',
          description: 'Of erasures, migrations and operators. One that fails blocks those behind it.',
          unit: 'short',
          queries: [
            { expr: 'max by (server, table) (sluice_clickhouse_pending_mutations)', legend: '{{server}} {{table}}' },
          ],
        },
      ],
    },
    {
      title: 'Statements',
      panels: [
        {
          title: 'Stored batches',
          unit: 'cps',
          queries: [
            { expr: `sum(${rate('sluice_writer_batch_duration_seconds_count')})`, legend: 'stored' },
            { expr: `sum(${rate('sluice_writer_batch_failures_total')})`, legend: 'failed, and retried' },
          ],
        },
        {
          title: 'Time to store a batch, 95th percentile',
          unit: 's',
          queries: [
            { expr: percentile(0.95, 'sluice_writer_batch_duration_seconds', ['instance']), legend: '{{instance}}' },
          ],
        },
        {
          title: 'Queries',
          description: 'unavailable: ClickHouse did not respond. too_expensive: it ended the query at a limit.',
          unit: 'reqps',
          queries: [
            {
              expr: `sum by (outcome) (${rate('sluice_query_duration_seconds_count')})`,
              legend: '{{outcome}}',
            },
          ],
        },
        {
          title: 'Time of queries, median',
          unit: 's',
          queries: [{ expr: percentile(0.5, 'sluice_query_duration_seconds', ['kind']), legend: '{{kind}}' }],
        },
      ],
    },
  ],
};
