import type { DashboardDescription } from './dashboard.ts';
import { percentile, rate } from './expressions.ts';

/** The way of an event from its acceptance to its storage, and what becomes of it later. Only several servers have names. */
export const pipeline: DashboardDescription = {
  name: 'pipeline',
  title: 'Sluice: pipeline',
  rows: [
    {
      title: 'From acceptance to storage',
      panels: [
        {
          title: 'Accepted events, stored messages',
          description: 'A message holds the rows of one or more requests.',
          unit: 'cps',
          queries: [
            { expr: `sum(${rate('sluice_ingest_accepted_events_total')})`, legend: 'accepted events' },
            {
              expr: `sum by (server) (${rate('sluice_writer_stored_messages_total')})`,
              legend: 'stored messages {{server}}',
            },
          ],
        },
        {
          title: 'Lag',
          description:
            'Age of the oldest row that is not stored. SluiceLagging fires above a minute, SluiceStuck above ten.',
          unit: 's',
          queries: [{ expr: 'max by (server, topic) (sluice_writer_lag_seconds)', legend: '{{server}} {{topic}}' }],
        },
        {
          title: 'Messages that wait',
          unit: 'short',
          queries: [
            {
              expr: 'sum by (server, topic) (max by (server, topic, partition) (sluice_writer_lag_messages))',
              legend: '{{server}} {{topic}}',
            },
          ],
        },
        {
          title: 'Time until Kafka deletes what is not stored',
          description: 'Only where a message waits. SluiceRetentionNear fires below a day.',
          unit: 's',
          queries: [
            {
              expr: 'min by (server, topic) (sluice_writer_retention_headroom_seconds)',
              legend: '{{server}} {{topic}}',
            },
          ],
        },
        {
          title: 'Time since the last stored batch',
          description: 'It grows while nothing is accepted, too.',
          unit: 's',
          queries: [{ expr: 'time() - sluice_writer_last_stored_timestamp_seconds', legend: '{{instance}}' }],
        },
        {
          title: 'Stored bytes',
          unit: 'Bps',
          queries: [
            { expr: `sum by (instance) (${rate('sluice_writer_stored_bytes_total')})`, legend: '{{instance}}' },
          ],
        },
      ],
    },
    {
      title: 'What goes wrong',
      panels: [
        {
          title: 'Failed batches, halted partitions',
          description: 'A failed batch is retried. A halted partition waits for a person.',
          unit: 'short',
          queries: [
            {
              expr: 'sum by (instance) (increase(sluice_writer_batch_failures_total[$__rate_interval]))',
              legend: '{{instance}} failures',
            },
            {
              expr: 'max by (server, topic, partition) (sluice_writer_halted_partitions)',
              legend: '{{server}} {{topic}}/{{partition}} halted',
            },
          ],
        },
        {
          title: 'Rows that are not stored',
          description: 'Dead letters, rejected calls (kept as dead letters), and rows of users deleted since.',
          unit: 'cps',
          queries: [
            { expr: `sum(${rate('sluice_writer_dead_letters_total')})`, legend: 'dead letters' },
            {
              expr: `sum by (client) (${rate('sluice_ingest_rejected_calls_total')})`,
              legend: 'rejected calls of {{client}}',
            },
            { expr: `sum by (reason) (${rate('sluice_writer_dropped_rows_total')})`, legend: 'dropped: {{reason}}' },
          ],
        },
        {
          title: 'Alarms',
          description:
            'More than 1 % of the rows are dead letters; an ingest-api with another KAFKA_PARTITIONS; acknowledged messages that Kafka has lost. All must be 0.',
          unit: 'short',
          queries: [
            { expr: 'max(sluice_writer_dead_letter_alarm)', legend: 'dead letters' },
            { expr: 'sum(sluice_writer_misplaced_messages_total)', legend: 'misplaced messages' },
            { expr: 'sum(sluice_ingest_lost_messages_total)', legend: 'lost messages' },
          ],
        },
      ],
    },
    {
      title: 'Servers, where there are several',
      panels: [
        {
          title: 'Behind Kafka',
          description: 'SluiceServerBehind fires above five minutes. Absent while a server cannot be read.',
          unit: 's',
          queries: [{ expr: 'max by (server) (sluice_query_server_behind_seconds)', legend: '{{server}}' }],
        },
        {
          title: 'Readable servers',
          description: '0: a query-api cannot read the server. SluiceServerAway fires after two minutes.',
          unit: 'short',
          queries: [{ expr: 'min by (server) (sluice_query_server_readable)', legend: '{{server}}' }],
        },
        {
          title: 'Which server is read, and how often one was given up',
          description:
            'By how many query-apis it is read. A server is given up when it does not respond and another one does.',
          unit: 'short',
          queries: [
            { expr: 'sum by (server) (sluice_query_server_chosen)', legend: '{{server}} is read' },
            {
              expr: 'sum by (server) (increase(sluice_query_given_up_servers_total[$__rate_interval]))',
              legend: '{{server}} given up',
            },
          ],
        },
      ],
    },
    {
      title: 'Kafka and the clock, as ingest-api sees them',
      panels: [
        {
          title: 'Partitions without a leader, or whose last send failed',
          unit: 'short',
          queries: [
            { expr: 'max(sluice_ingest_leaderless_partitions)', legend: 'without a leader' },
            { expr: 'max(sluice_ingest_failing_partitions)', legend: 'failing' },
          ],
        },
        {
          title: "Difference from Kafka's clock",
          description: 'Above the limit nothing is accepted. SluiceClockSkew fires above half of it.',
          unit: 's',
          queries: [
            { expr: 'abs(sluice_ingest_clock_ahead_seconds)', legend: '{{instance}}' },
            { expr: 'max(sluice_ingest_clock_ahead_limit_seconds)', legend: 'limit' },
          ],
        },
        {
          title: 'Time to store a batch',
          unit: 's',
          queries: [
            { expr: percentile(0.5, 'sluice_writer_batch_duration_seconds', []), legend: 'median' },
            { expr: percentile(0.95, 'sluice_writer_batch_duration_seconds', []), legend: '95th percentile' },
          ],
        },
      ],
    },
    {
      title: 'Erasure, backup and audit',
      panels: [
        {
          title: 'Users deleted and not erased yet',
          unit: 'short',
          queries: [{ expr: 'max by (server) (sluice_erasure_pending_users)', legend: '{{server}} users' }],
        },
        {
          title: 'Oldest deletion that is not erased yet',
          description: 'SluiceErasureLate fires above the deadline.',
          unit: 's',
          queries: [
            { expr: 'max by (server) (sluice_erasure_oldest_seconds)', legend: '{{server}} age' },
            { expr: 'max(sluice_erasure_deadline_seconds)', legend: 'deadline' },
          ],
        },
        {
          title: 'Age of the last backup',
          description: 'SluiceBackupOld fires when the newest of all servers is above 26 hours.',
          unit: 's',
          queries: [{ expr: 'max by (server) (sluice_backup_age_seconds)', legend: '{{server}} age' }],
        },
        {
          title: 'Rows that audits found missing, invented or stored twice',
          description: 'Of the last 30 days, in the newest audit of each hour. SluiceAuditDifferences fires above 0.',
          unit: 'short',
          queries: [
            { expr: 'max by (server) (sluice_audit_missing_events)', legend: '{{server}} missing' },
            { expr: 'max by (server) (sluice_audit_invented_events)', legend: '{{server}} invented' },
            { expr: 'max by (server) (sluice_audit_duplicate_events)', legend: '{{server}} stored twice' },
          ],
        },
        {
          title: 'Age of the newest rows that are audited',
          description: 'SluiceAuditLate fires above 52 hours. Without an audit of everything there is none.',
          unit: 's',
          queries: [
            {
              expr: 'time() - max by (server) (sluice_audit_balanced_through_timestamp_seconds)',
              legend: '{{server}} age',
            },
          ],
        },
      ],
    },
  ],
};
