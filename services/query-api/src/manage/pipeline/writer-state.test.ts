import { Gauge, Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { acceptedOf, keysFileOf } from './ingest-state.ts';
import { backupOf, clickHouseOf, erasuresOf, lagOf, writersOf } from './writer-state.ts';

type Series = Readonly<Record<string, number>>;

/** Returns metrics as a service exposes them. A metric with a label has its series by the label's value. */
async function metricsText(metrics: Readonly<Record<string, number | { label: string; series: Series }>>) {
  const registry = new Registry();
  for (const [name, given] of Object.entries(metrics)) {
    const labelNames = typeof given === 'number' ? [] : [given.label];
    const gauge: Gauge = new Gauge({ name, help: 'h', labelNames, registers: [registry] });
    if (typeof given === 'number') gauge.set(given);
    else for (const [value, number] of Object.entries(given.series)) gauge.set({ [given.label]: value }, number);
  }
  return await registry.metrics();
}

const partitions = (series: Series) => ({ label: 'partition', series });
const tables = (series: Series) => ({ label: 'table', series });
const disks = (series: Series) => ({ label: 'disk', series });

test('the lag is that of all partitions, from a writer that knows it', async () => {
  const knows = await metricsText({
    sluice_writer_lag_messages: partitions({ 0: 3, 1: 4 }),
    sluice_writer_lag_seconds: partitions({ 0: 9, 1: 5 }),
    sluice_writer_retention_headroom_seconds: partitions({ 0: 70, 1: 60 }),
  });
  expect(lagOf([await metricsText({}), knows, knows])).toEqual({ messages: 7, seconds: 9, headroomSeconds: 60 });
  expect(lagOf([await metricsText({})])).toBeNull();
});

test('nothing that waits has no headroom', async () => {
  const text = await metricsText({
    sluice_writer_lag_messages: partitions({ 0: 0 }),
    sluice_writer_lag_seconds: partitions({ 0: 0 }),
  });
  expect(lagOf([text])).toEqual({ messages: 0, seconds: 0, headroomSeconds: null });
});

test('what each writer knows of itself alone is added up', async () => {
  const first = await metricsText({
    ...{
      sluice_writer_stored_messages_total: 10,
      sluice_writer_batch_failures_total: 2,
      sluice_writer_dead_letters_total: 1,
      sluice_writer_dead_letter_alarm: 0,
    },
    sluice_writer_halted_partitions: partitions({ 0: 1, 1: 1 }),
    sluice_writer_last_stored_timestamp_seconds: 1_772_366_400,
  });
  const second = await metricsText({
    ...{
      sluice_writer_stored_messages_total: 5,
      sluice_writer_batch_failures_total: 3,
      sluice_writer_dead_letters_total: 4,
      sluice_writer_dead_letter_alarm: 1,
    },
    sluice_writer_last_stored_timestamp_seconds: 1_772_366_405.5,
  });
  expect(writersOf([first, second])).toEqual({
    storedMessages: 15,
    ...{ batchFailures: 5, deadLetters: 5, deadLetterAlarm: true, haltedPartitions: 2 },
    lastStoredAt: '2026-03-01T12:00:05.500Z',
  });
  expect(writersOf([await metricsText({ sluice_writer_dead_letter_alarm: 0 })])).toEqual({
    ...{ storedMessages: 0, batchFailures: 0, deadLetters: 0, deadLetterAlarm: false },
    ...{ haltedPartitions: 0, lastStoredAt: null },
  });
});

test('the fullest partition is the one that is nearest to its limit', async () => {
  const text = await metricsText({
    sluice_clickhouse_disk_bytes: disks({ default: 100, cold: 900 }),
    sluice_clickhouse_disk_free_bytes: disks({ cold: 800, default: 20 }),
    sluice_clickhouse_partition_parts: tables({ entities: 90, events: 50, unlimited: 500 }),
    sluice_clickhouse_partition_parts_limit: tables({ entities: 3_000, events: 100, unlimited: 0 }),
    sluice_clickhouse_pending_mutations: tables({ entities: 1, events: 2, unlimited: 0 }),
  });
  expect(clickHouseOf([text])).toEqual({
    disks: [
      { name: 'default', freeBytes: 20, totalBytes: 100 },
      { name: 'cold', freeBytes: 800, totalBytes: 900 },
    ],
    fullestPartition: { table: 'events', parts: 50, partsLimit: 100 },
    pendingMutations: 3,
  });
  expect(clickHouseOf([await metricsText({})])).toBeNull();
});

test('erasures and backups are known where a writer knows them', async () => {
  const text = await metricsText({
    ...{ sluice_erasure_pending_users: 4, sluice_erasure_oldest_seconds: 60, sluice_erasure_deadline_seconds: 3_600 },
    sluice_backup_age_seconds: 120,
  });
  const silent = await metricsText({ sluice_erasure_deadline_seconds: 3_600 });
  expect(erasuresOf([silent, text])).toEqual({ pendingUsers: 4, oldestSeconds: 60, deadlineSeconds: 3_600 });
  expect(backupOf([silent, text])).toEqual({ ageSeconds: 120 });
  expect(erasuresOf([silent])).toBeNull();
  expect(backupOf([silent])).toBeNull();
});

test('of several servers, the lag and the erasures are the worst, disks have their names, and the newest backup counts', async () => {
  const ofServer = async (server: string, metrics: Parameters<typeof metricsText>[0]) =>
    (await metricsText(metrics)).replaceAll(
      /^(\w+)(?:\{(.*)\})? /gm,
      (_, name, labels = '') => `${name}{${[labels, `server="${server}"`].filter((one) => one !== '').join(',')}} `,
    );
  const first = await ofServer('a1', {
    sluice_writer_lag_messages: partitions({ 0: 3, 1: 4 }),
    sluice_writer_lag_seconds: partitions({ 0: 9, 1: 5 }),
    sluice_writer_retention_headroom_seconds: partitions({ 0: 70 }),
    sluice_clickhouse_disk_bytes: disks({ default: 100 }),
    sluice_clickhouse_disk_free_bytes: disks({ default: 20 }),
    sluice_clickhouse_partition_parts: tables({ events: 10 }),
    sluice_clickhouse_partition_parts_limit: tables({ events: 100 }),
    sluice_clickhouse_pending_mutations: tables({ events: 1 }),
    ...{ sluice_erasure_pending_users: 1, sluice_erasure_oldest_seconds: 60, sluice_erasure_deadline_seconds: 3_600 },
    sluice_backup_age_seconds: 120,
  });
  const second = await ofServer('a2', {
    sluice_writer_lag_messages: partitions({ 0: 900 }),
    sluice_writer_lag_seconds: partitions({ 0: 400 }),
    sluice_writer_retention_headroom_seconds: partitions({ 0: 50 }),
    sluice_clickhouse_disk_bytes: disks({ default: 300 }),
    sluice_clickhouse_disk_free_bytes: disks({ default: 30 }),
    sluice_clickhouse_partition_parts: tables({ events: 20 }),
    sluice_clickhouse_partition_parts_limit: tables({ events: 100 }),
    sluice_clickhouse_pending_mutations: tables({ events: 2 }),
    ...{ sluice_erasure_pending_users: 4, sluice_erasure_oldest_seconds: 90, sluice_erasure_deadline_seconds: 3_600 },
    sluice_backup_age_seconds: 9_000_000,
  });
  for (const writers of [
    [first, first, second],
    [second, first],
  ]) {
    expect(lagOf(writers)).toEqual({ messages: 900, seconds: 400, headroomSeconds: 50 });
    const found = clickHouseOf(writers);
    expect(found?.disks.toSorted((a, b) => (a.name < b.name ? -1 : 1))).toEqual([
      { name: 'a1/default', freeBytes: 20, totalBytes: 100 },
      { name: 'a2/default', freeBytes: 30, totalBytes: 300 },
    ]);
    expect(found?.fullestPartition).toEqual({ table: 'events', parts: 20, partsLimit: 100 });
    expect(found?.pendingMutations).toBe(3);
    expect(erasuresOf(writers)).toEqual({ pendingUsers: 4, oldestSeconds: 90, deadlineSeconds: 3_600 });
    expect(backupOf(writers)).toEqual({ ageSeconds: 120 });
  }
});

test('refused requests are added up by code, and one keys file that cannot be used counts', async () => {
  const codes = (series: Series) => ({ label: 'code', series });
  const ingests = [
    await metricsText({
      sluice_ingest_accepted_events_total: 5,
      sluice_ingest_rejected_calls_total: 1,
      sluice_http_refused_requests_total: codes({ overloaded: 2, unauthorized: 1 }),
      ...{ sluice_keys_file_valid: 1, sluice_keys_file_age_seconds: 10 },
    }),
    await metricsText({
      sluice_ingest_accepted_events_total: 7,
      sluice_http_refused_requests_total: codes({ unauthorized: 2, clock_skewed: 2 }),
      ...{ sluice_keys_file_valid: 0, sluice_keys_file_age_seconds: 90 },
    }),
  ];
  expect(acceptedOf(ingests)).toEqual({
    ...{ events: 12, rejectedCalls: 1, clients: [] },
    refused: [
      { code: 'unauthorized', requests: 3 },
      { code: 'clock_skewed', requests: 2 },
      { code: 'overloaded', requests: 2 },
    ],
  });
  expect(keysFileOf(ingests)).toEqual({ valid: false, ageSeconds: 90 });
  expect(keysFileOf([await metricsText({ sluice_keys_file_valid: 0 })])).toEqual({ valid: false, ageSeconds: null });
  expect(keysFileOf([await metricsText({})])).toBeNull();
});

test('calls are added up by client, those with the most rejected calls first, with the reasons', () => {
  const ingests = [
    `sluice_ingest_calls_total{client="posthog-js"} 900
sluice_ingest_calls_total{client="analytics-php"} 6
sluice_ingest_calls_total{client="analytics-go"} 0
sluice_ingest_rejected_calls_total{client="analytics-php",reason="properties"} 1
sluice_ingest_rejected_calls_total{client="analytics-php",reason="time"} 3
sluice_ingest_rejected_calls_total{client="posthog-js",reason="time"} 1
`,
    `sluice_ingest_calls_total{client="analytics-php"} 4
sluice_ingest_rejected_calls_total{client="analytics-php",reason="properties"} 4
`,
  ];
  expect(acceptedOf(ingests)).toMatchObject({
    rejectedCalls: 9,
    clients: [
      {
        ...{ client: 'analytics-php', calls: 10, rejectedCalls: 8 },
        reasons: [
          { reason: 'properties', calls: 5 },
          { reason: 'time', calls: 3 },
        ],
      },
      { client: 'posthog-js', calls: 900, rejectedCalls: 1, reasons: [{ reason: 'time', calls: 1 }] },
    ],
  });
});
