import type { DashboardDescription } from './dashboard.ts';
import { percentile, rate } from './expressions.ts';

const JOBS = 'job=~".*sluice.*"';
/** All requests but those of probes and of Prometheus. */
const REQUESTS = `${JOBS}, route!~"/livez|/readyz|/metrics"`;

/** What the three processes do, and how they are. */
export const services: DashboardDescription = {
  name: 'services',
  title: 'Sluice: services',
  rows: [
    {
      title: 'Requests',
      panels: [
        {
          title: 'Processes',
          description: 'Processes that Prometheus gets metrics from.',
          unit: 'short',
          queries: [{ expr: `sum by (job) (up{${JOBS}})`, legend: '{{job}}' }],
        },
        {
          title: 'Requests',
          unit: 'reqps',
          queries: [
            {
              expr: `sum by (job, status) (${rate('http_request_duration_seconds_count', REQUESTS)})`,
              legend: '{{job}} {{status}}',
            },
          ],
        },
        {
          title: 'Latency, 95th percentile',
          description: 'From the request to the end of its response.',
          unit: 's',
          queries: [
            {
              expr: percentile(0.95, 'http_request_duration_seconds', ['job', 'route'], REQUESTS),
              legend: '{{job}} {{route}}',
            },
          ],
        },
        {
          title: 'Share of 503',
          description: 'SluiceRefusing fires above 5 %.',
          unit: 'percentunit',
          queries: [
            {
              expr:
                `sum by (job) (${rate('http_request_duration_seconds_count', `${REQUESTS}, status="503"`)}) ` +
                `/ sum by (job) (${rate('http_request_duration_seconds_count', REQUESTS)})`,
              legend: '{{job}}',
            },
          ],
        },
        {
          title: 'Refused requests',
          description: 'By the code in the response.',
          unit: 'reqps',
          queries: [
            { expr: `sum by (job, code) (${rate('sluice_http_refused_requests_total')})`, legend: '{{job}} {{code}}' },
            {
              expr: `sum by (job) (${rate('sluice_http_rate_limited_requests_total')})`,
              legend: '{{job}} over their rate',
            },
          ],
        },
      ],
    },
    {
      title: 'Queries and streams',
      panels: [
        {
          title: 'Queries under way',
          description: 'Queries that run, and that wait for a slot.',
          unit: 'short',
          queries: [{ expr: 'sum by (pool, state) (sluice_queries)', legend: '{{pool}} {{state}}' }],
        },
        {
          title: 'Wait for a slot, 95th percentile',
          unit: 's',
          queries: [{ expr: percentile(0.95, 'sluice_query_wait_seconds', ['pool']), legend: '{{pool}}' }],
        },
        {
          title: 'Time of queries, 95th percentile',
          unit: 's',
          queries: [{ expr: percentile(0.95, 'sluice_query_duration_seconds', ['kind']), legend: '{{kind}}' }],
        },
        {
          title: 'Queries by outcome',
          unit: 'reqps',
          queries: [
            { expr: `sum by (outcome) (${rate('sluice_query_duration_seconds_count')})`, legend: '{{outcome}}' },
          ],
        },
        {
          title: 'Streams',
          unit: 'short',
          queries: [{ expr: 'sum by (instance) (sluice_stream_listeners)', legend: '{{instance}} clients' }],
        },
        {
          title: 'Events sent to streams, streams that ended',
          unit: 'cps',
          queries: [
            { expr: `sum(${rate('sluice_stream_events_total')})`, legend: 'events' },
            { expr: `sum by (reason) (${rate('sluice_stream_ended_total')})`, legend: 'ended: {{reason}}' },
            { expr: `sum(${rate('sluice_stream_moves_total')})`, legend: 'moved to another server' },
          ],
        },
      ],
    },
    {
      title: 'Processes',
      panels: [
        {
          title: 'Age of the keys file',
          description: 'Time since the keys file in force was changed.',
          unit: 's',
          queries: [{ expr: 'max by (job, instance) (sluice_keys_file_age_seconds)', legend: '{{instance}}' }],
        },
        {
          title: 'Keys file can be read',
          description: '0: it cannot, and the last good one stays in force.',
          unit: 'short',
          queries: [{ expr: 'min by (job, instance) (sluice_keys_file_valid)', legend: '{{instance}}' }],
        },
        {
          title: 'Memory of requests',
          description: 'Above the budget, requests get 503.',
          unit: 'bytes',
          queries: [
            { expr: 'sluice_ingest_reserved_bytes', legend: '{{instance}} reserved' },
            { expr: 'sluice_ingest_memory_budget_bytes', legend: '{{instance}} budget' },
            { expr: 'sluice_query_reserved_bytes', legend: '{{instance}} reserved' },
            { expr: 'sluice_query_memory_budget_bytes', legend: '{{instance}} budget' },
          ],
        },
        {
          title: 'Resident memory',
          unit: 'bytes',
          queries: [{ expr: `process_resident_memory_bytes{${JOBS}}`, legend: '{{job}} {{instance}}' }],
        },
        {
          title: 'CPU',
          description: 'Processors used.',
          unit: 'short',
          queries: [{ expr: rate('process_cpu_seconds_total', JOBS), legend: '{{job}} {{instance}}' }],
        },
      ],
    },
  ],
};
