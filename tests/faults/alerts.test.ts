import { randomUUID } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findFreePorts } from '@sluice/local-stack/ports';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { Receiver, WEBHOOKS_ENV } from '@sluice/query-api/testing/webhooks';
import { loadConfig } from '@sluice/shared/config';
import { createKafka } from '@sluice/shared/kafka/client';
import { withAdmin } from '@sluice/shared/kafka/topics';
import { createLogger } from '@sluice/shared/log';
import { messageHeaders } from '@sluice/shared/rows';
import { EventStream } from '@sluice/shared/testing/event-stream';
import { eventually } from '@sluice/shared/testing/eventually';
import { TooLate, until } from '@sluice/shared/testing/until';
import { configSchema } from '@sluice/writer/config';
import kafkajs, { type Kafka } from 'kafkajs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { dashboardFiles } from '../../scripts/dashboards/files.ts';
import { readClickHouse } from '../kit/clickhouse.ts';
import { deleteRecords } from '../kit/delete-records.ts';
import { ownClickHouse, ownKafka } from '../kit/engines.ts';
import { isOfServers } from '../kit/expressions.ts';
import { submitEach } from '../kit/halted-partitions.ts';
import { startLoad } from '../kit/load.ts';
import { type Pipeline, startPipeline } from '../kit/pipeline.ts';
import { type Prometheus, startPrometheus } from '../kit/prometheus.ts';
import { readRules } from '../kit/scaled-rules.ts';
import { type Service, startService } from '../kit/service.ts';
import { mountSmallDisk } from '../kit/small-disk.ts';

/** Every time of the rules is divided by it: five minutes are 20 seconds. */
const FACTOR = 15;
const SCRAPE_INTERVAL_SECONDS = 2;
/** Evaluations of a healthy system: a minute, or a quarter of an hour of the rules' time. */
const HEALTHY_EVALUATIONS = 60;
const MEBIBYTE = 1_024 * 1_024;
/** Larger than the disk of any machine that runs this, so that a load cannot seem to fill it. It takes no memory. */
const DISK_MEBIBYTES = 4_194_304;
/** What is left of it by the fault. No insert starts with less than 64 MiB. */
const FULL_DISK = { mebibytes: 450, leftBytes: 40 * MEBIBYTE } as const;
const HOUR_MS = 3_600_000;

/** What a busy machine causes for a moment, without a fault. */
const MAY_BE_PENDING: readonly string[] = ['SluiceServiceDown', 'SluiceLagging', 'SluiceBatchesFailing'];

const RULES = readRules(
  await readFile(join(import.meta.dirname, '..', '..', 'deploy', 'prometheus', 'sluice.rules.yml'), 'utf8'),
);

/** Those of several ClickHouse servers, or brokers, cannot fire here, where there is one: `deploy/prometheus/tests`. */
const ALERTS = [
  ...new Set(
    RULES.filter(({ expr }) => !isOfServers(expr) && !expr.includes('sluice_kafka_brokers')).map(({ alert }) => alert),
  ),
];

const started = new AsyncDisposableStack();
const startedAt = new Date();
const faults = new Map<string, { readonly what: string; readonly at: Date }>();
let clickhouse: Awaited<ReturnType<typeof ownClickHouse>>;
let disk: Awaited<ReturnType<typeof mountSmallDisk>>;
let kafkaProcess: Awaited<ReturnType<typeof ownKafka>>;
let kafka: Kafka;
let running: Pipeline;
let prometheus: Prometheus;

beforeAll(async () => {
  const folder = started.use(await makeTempDir()).path;
  const dataDir = join(folder, 'clickhouse');
  disk = started.use(await mountSmallDisk(dataDir, DISK_MEBIBYTES));
  [kafkaProcess, clickhouse] = await Promise.all([
    ownKafka(),
    ownClickHouse({ dataDir, logDir: folder, wrap: disk.enter }),
  ]);
  started.use(kafkaProcess);
  started.use(clickhouse);
  running = started.use(
    await startPipeline({
      kafkaBrokers: kafkaProcess.brokers,
      clickhouseUrl: clickhouse.url,
      name: 'alerts',
      env: { KAFKA_PARTITIONS: '2', PRODUCE_TIMEOUT_MS: '4000', ...WEBHOOKS_ENV },
    }),
  );
  const config = loadConfig(configSchema, {
    KAFKA_BROKERS: kafkaProcess.brokers.join(','),
    CLICKHOUSE_URL: clickhouse.url,
  });
  kafka = createKafka(config, 'test', createLogger('test', 'silent'));
  prometheus = started.use(
    await startPrometheus({ factor: FACTOR, scrapeInterval: SCRAPE_INTERVAL_SECONDS, targets: targetsOf() }),
  );
  await until('the first scrapes', async () => {
    const [up, alerts] = await Promise.all([prometheus.query('up == 1'), prometheus.query('ALERTS')]);
    return up.length === targetsOf().length && alerts.length === 0;
  });
});
afterAll(() => started.disposeAsync());

test('over a healthy load no alert fires', async () => {
  const since = new Date();
  const before = await prometheus.evaluations();
  await useEverything();
  await using _load = startLoad({
    pipeline: running,
    urls: () => [running.services['ingest-api'].url],
    concurrency: 4,
  });
  await using reading = readAllTheTime();
  await until('Prometheus to have evaluated the rules', async () => {
    return (await prometheus.evaluations()) >= before + HEALTHY_EVALUATIONS;
  });
  await reading.stop();
  const seen = await alertsSince(since);
  const fired = seen.filter(({ state }) => state === 'firing').map(({ alert }) => alert);
  if (fired.length > 0 && fired.every((alert) => MAY_BE_PENDING.includes(alert))) {
    throw new TooLate(`the machine was too busy for a healthy load: ${fired.join(', ')}`);
  }
  expect(fired).toEqual([]);
  expect(seen.filter(({ alert }) => !MAY_BE_PENDING.includes(alert))).toEqual([]);
});

test('a webhook whose receiver fails lags, and one whose receiver is gone is paused', async () => {
  await using receiver = await Receiver.start();
  receiver.behaviour = (_, response) => response.writeHead(500).end();
  const response = await fetch(`${running.services['query-api'].url}/webhooks`, {
    method: 'POST',
    headers: { authorization: `Bearer ${running.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ url: receiver.url }),
  });
  expect(response.status).toBe(201);
  const { id } = (await response.json()) as { id: string };
  await cause('SluiceWebhookLagging', 'the receiver of a webhook responds with 500', async () => {
    await submitTo(running.services['ingest-api']);
  });
  await firing('SluiceWebhookLagging');
  await cause('SluiceWebhookPaused', 'the receiver of a webhook responds with 410', async () => {
    receiver.behaviour = (_, response) => response.writeHead(410).end();
  });
  await firing('SluiceWebhookPaused');
  await fetch(`${running.services['query-api'].url}/webhooks/${id}`, {
    method: 'DELETE',
    headers: { authorization: `Bearer ${running.key}` },
  });
  await until('the alerts to end', async () =>
    (await alertsSince(new Date())).every(({ alert }) => !alert.startsWith('SluiceWebhook')),
  );
});

test('each fault of a process, of a clock, of rows, of ClickHouse and of what was forgotten fires its alert', async () => {
  const { services, database } = running;
  const faultsAt = new Date();
  await using _load = startLoad({ pipeline: running, urls: () => [services['ingest-api'].url], concurrency: 2 });

  await cause('SluiceRetentionNear', 'retention.ms of a topic is set to an hour', () => keepForAnHour('alerts.events'));
  await cause('SluiceErasureLate', 'merges are stopped, and a user was deleted 8 hours ago', async () => {
    await sql(`SYSTEM STOP MERGES ${database}.events`);
    await sql(`INSERT INTO ${database}.pending_deletions (workspace_id, user_id, version, stored_at)
      VALUES ('test', 'late', ${Date.now() * 1_000}, now64(3) - INTERVAL 8 HOUR)`);
  });
  await cause('SluicePartsNearLimit', '600 parts, of 1,000 that are allowed, and merges are stopped', async () => {
    const table = `${database}.dead_letters`;
    await sql(`SYSTEM STOP MERGES ${table}`);
    await sql(`ALTER TABLE ${table} MODIFY SETTING parts_to_throw_insert = 1000`);
    await sql(`INSERT INTO ${table} (id, row) SELECT toString(number), 'a part' FROM numbers(600)
      SETTINGS max_block_size = 1, max_threads = 1, max_insert_threads = 1, min_insert_block_size_rows = 1`);
  });
  await cause('SluiceBackupOld', 'the last backup was made two days ago', () =>
    sql(`INSERT INTO ${database}.backups (id, started_at, finished_at)
      SELECT generateUUIDv4(), now64(6) - INTERVAL 2 DAY, now64(6) - INTERVAL 2 DAY`),
  );
  await cause('SluiceServersDiffer', 'a comparison with another server has found a difference', () =>
    sql(`INSERT INTO ${database}.server_comparisons (compared_at, other, through, months, event_count, differing)
      VALUES (now64(3), 'a2', now64(6), 1, 1, ['events'])`),
  );
  await cause('SluiceDeadLetters', 'a row that is no JSON', () => produce('?'));
  await cause('SluiceServiceDown', 'query-api is frozen', async () => services['query-api'].freeze());
  await using skewed = await startWithWrongClock();
  await cause('SluiceClockSkew', 'an ingest-api whose clock is an hour ahead', () =>
    prometheus.setTargets([...targetsOf(), { url: skewed.service.url, job: 'sluice-ingest-api' }]),
  );
  await using misplacing = await startIngest({ KAFKA_PARTITIONS: '1' });
  await misplacing.service.ready();
  await cause('SluiceMessagesMisplaced', 'an ingest-api with another KAFKA_PARTITIONS sends rows', async () => {
    await submitTo(misplacing.service);
  });
  const keys = await readFile(running.keysFile);
  await cause('SluiceKeysFileInvalid', 'the keys file is cut off', () => writeFile(running.keysFile, '{'));
  await firing('SluiceDeadLetters');

  const failing = ['SluiceClickHouseDiskFilling', 'SluiceBatchesFailing', 'SluiceLagging', 'SluiceStuck'];
  await cause(failing, "ClickHouse's disk is full", async () => {
    await disk.resize(FULL_DISK.mebibytes);
    await disk.fill(FULL_DISK.leftBytes);
  });
  const expected = [
    ...failing,
    ...['SluiceRetentionNear', 'SluiceErasureLate', 'SluicePartsNearLimit', 'SluiceBackupOld'],
    ...['SluiceMessagesMisplaced', 'SluiceKeysFileInvalid', 'SluiceServersDiffer'],
  ];
  await firing(...expected, 'SluiceServiceDown', 'SluiceClockSkew');
  const fired = (await alertsSince(faultsAt)).filter(({ state }) => state === 'firing').map(({ alert }) => alert);
  const caused = [...faults].filter(([, { at }]) => at >= faultsAt).map(([alert]) => alert);
  expect([...new Set(fired)].sort()).toEqual(caused.sort());

  await writeFile(running.keysFile, keys);
  await disk.free();
  await disk.resize(DISK_MEBIBYTES);
  services['query-api'].thaw();
  await prometheus.setTargets(targetsOf());
});

test('while Kafka is down, after it deleted rows that were not stored, and after it lost them, the alerts fire', async () => {
  const { services } = running;
  {
    await using _load = startLoad({ pipeline: running, urls: () => [services['ingest-api'].url], concurrency: 4 });
    const refused = ['SluiceNotAccepting', 'SluiceRefusing'];
    await cause(refused, 'Kafka is killed under load', () => kafkaProcess.kill9());
    await firing(...refused);
  }
  await services.writer.kill9();
  await kafkaProcess.restart();
  await cause('SluicePartitionHalted', 'Kafka deletes rows that are not stored', async () => {
    await submitEach(running, 20);
    await deleteRecords(kafka, 'alerts.events', 0);
    services.writer = services.writer.again();
  });
  await firing('SluicePartitionHalted');
  await cause('SluiceMessagesLost', 'the topic of events is deleted and created again', () =>
    createAgain('alerts.events'),
  );
  await until('ingest-api to send to the new topic', async () => (await submitTo(services['ingest-api'])) === 202);
  await firing('SluiceMessagesLost');
});

test('every alert had its fault', async () => {
  const rows = [];
  for (const [alert, { what, at }] of faults) {
    const first = (await alertsSince(at)).find((found) => found.alert === alert && found.state === 'firing');
    const seconds = Math.round((first?.at ?? Number.NaN) - at.getTime() / 1_000);
    const [rule] = RULES.filter((found) => found.alert === alert && found.labels['severity'] === first?.severity);
    rows.push({
      alert,
      severity: first?.severity,
      fault: what,
      'fired after s': seconds,
      [`for, before it was divided by ${FACTOR}`]: rule?.for,
    });
  }
  console.table(rows);
  expect([...faults.keys()].sort()).toEqual(ALERTS.sort());
});

test.each(dashboardFiles())('every query of $dashboard.title returns data', async ({ path }) => {
  const dashboard = JSON.parse(await readFile(path, 'utf8')) as DashboardJson;
  const targets = dashboard.panels
    .flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ title, expr })))
    .filter(({ expr }) => !isOfServers(expr));
  expect(targets.length).toBeGreaterThan(5);
  const empty: string[] = [];
  for (const { title, expr } of targets) {
    const query = expr.replaceAll('$__rate_interval', `${4 * SCRAPE_INTERVAL_SECONDS}s`);
    const found = await prometheus.queryRange(query, startedAt, SCRAPE_INTERVAL_SECONDS);
    if (!found.some(({ values }) => values.some(([, value]) => value !== 'NaN'))) empty.push(`${title}: ${expr}`);
  }
  expect(empty).toEqual([]);
});

interface DashboardJson {
  readonly panels: readonly { readonly title: string; readonly targets?: readonly { readonly expr: string }[] }[];
}

/** Causes the fault that alerts are for. */
async function cause(alerts: string | readonly string[], what: string, act: () => Promise<void>): Promise<void> {
  for (const alert of [alerts].flat()) faults.set(alert, { what, at: new Date() });
  await act();
}

/** Waits until these alerts have fired since their faults. */
async function firing(...alerts: readonly string[]): Promise<void> {
  for (const alert of alerts) {
    const since = faults.get(alert)?.at ?? startedAt;
    await until(`${alert} to fire`, async () =>
      (await alertsSince(since)).some((found) => found.alert === alert && found.state === 'firing'),
    );
  }
}

interface SeenAlert {
  readonly alert: string;
  readonly severity: string;
  readonly state: string;
  /** When it was seen first, in seconds since 1970. */
  readonly at: number;
  /** What else identifies it, for messages. */
  readonly labels: string;
}

/** The alerts that have been pending or firing since then. */
async function alertsSince(since: Date): Promise<SeenAlert[]> {
  const found = await prometheus.queryRange('ALERTS', since, 1);
  return found
    .map(({ metric, values }) => {
      const { __name__, alertname = '', alertstate = '', severity = '', ...labels } = metric;
      const at = values[0]?.[0] ?? 0;
      return { alert: alertname, severity, state: alertstate, at, labels: JSON.stringify(labels) };
    })
    .sort((a, b) => a.at - b.at);
}

function targetsOf() {
  return Object.entries(running.services).map(([name, { url }]) => ({ url, job: `sluice-${name}` }));
}

async function sql(statement: string): Promise<void> {
  await readClickHouse(clickhouse.url, statement);
}

/** Sends a line to Kafka as it is, which ingest-api would not. */
async function produce(line: string): Promise<void> {
  const producer = kafka.producer({ allowAutoTopicCreation: false });
  await producer.connect();
  const messages = [{ value: `${line}\n`, headers: messageHeaders('events'), partition: 1 }];
  await producer.send({ topic: 'alerts.events', acks: -1, messages });
  await producer.disconnect();
}

/** Does once what leaves a trace in metrics that dashboards show. */
async function useEverything(): Promise<void> {
  const { services, key } = running;
  for (const foreignUserId of ['late', 'gone']) {
    await running.submit({ foreignUserGroupId: 'g', foreignUserId, events: [{ event: 'e' }] });
  }
  await running.settled(2);
  expect((await running.submit({}, { key: 'unknown' })).status).toBe(401);
  const stream = await EventStream.open(`${services['query-api'].url}/events/stream`, { key });
  stream.close();
  await stream.ended;
  // A row that was accepted before its user was deleted, and arrives after that, is dropped.
  const acceptedAt = Date.now() * 1_000;
  expect((await running.deleteUser('gone')).status).toBe(202);
  await running.drained();
  const row = { workspace_id: 'test', timestamp: Date.now(), uuid: randomUUID(), event: 'e', user_id: 'gone' };
  await produce(JSON.stringify({ ...row, received_at: acceptedAt }));
}

/** Queries until it is stopped. */
function readAllTheTime() {
  let reads = true;
  const reading = (async () => {
    while (reads) await Promise.all([running.get('/events?limit=5'), running.get('/users/late')]);
  })();
  const stop = async () => {
    reads = false;
    await reading;
  };
  return { stop, [Symbol.asyncDispose]: stop };
}

async function keepForAnHour(topic: string): Promise<void> {
  const configEntries = [
    { name: 'retention.ms', value: String(HOUR_MS) },
    // What is not named gets its default.
    { name: 'message.timestamp.type', value: 'LogAppendTime' },
  ];
  const resources = [{ type: kafkajs.ConfigResourceTypes.TOPIC, name: topic, configEntries }];
  await withAdmin(kafka, (admin) => admin.alterConfigs({ validateOnly: false, resources }));
}

async function createAgain(topic: string): Promise<void> {
  await withAdmin(kafka, async (admin) => {
    await admin.deleteTopics({ topics: [topic] });
    const configEntries = [{ name: 'message.timestamp.type', value: 'LogAppendTime' }];
    await until('Kafka to have deleted it', async () =>
      admin.createTopics({ topics: [{ topic, numPartitions: 2, configEntries }] }).catch(() => false),
    );
  });
}

interface ExtraService extends AsyncDisposable {
  readonly service: Service;
}

/** Starts another ingest-api, with other variables. */
async function startIngest(env: Readonly<Record<string, string>>): Promise<ExtraService> {
  const [port = 0] = await findFreePorts(1);
  const service = startService('ingest-api', port, { ...running.environmentOf('ingest-api'), ...env });
  return { service, [Symbol.asyncDispose]: () => service.kill9() };
}

async function startWithWrongClock(): Promise<ExtraService> {
  const preload = fileURLToPath(new URL('../kit/shifted-clock.mjs', import.meta.url));
  const skewed = await startIngest({ NODE_OPTIONS: `--import ${preload}`, CLOCK_SHIFT_MS: String(HOUR_MS) });
  await eventually(() =>
    fetch(`${skewed.service.url}/livez`).then(
      ({ status }) => status,
      () => 0,
    ),
  ).toBe(200);
  return skewed;
}

/** Submits an event to an ingest-api, and returns the status. */
async function submitTo({ url }: Service): Promise<number> {
  const response = await fetch(`${url}/v1/public/userGroups`, {
    method: 'POST',
    headers: { authorization: `Bearer ${running.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ foreignUserGroupId: 'g', events: [{ event: 'e' }] }),
  });
  await response.arrayBuffer();
  return response.status;
}
