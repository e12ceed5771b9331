import { randomUUID } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { findFreePorts } from '@sluice/local-stack/ports';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { Receiver, WEBHOOKS_ENV } from '@sluice/query-api/testing/webhooks';
import { createLogger } from '@sluice/shared/base/log';
import { loadConfig } from '@sluice/shared/config';
import { createKafka } from '@sluice/shared/kafka/client';
import { withAdmin } from '@sluice/shared/kafka/topics';
import { messageHeaders } from '@sluice/shared/rows';
import { EventStream } from '@sluice/shared/testing/event-stream';
import { eventually } from '@sluice/shared/testing/eventually';
import { until } from '@sluice/shared/testing/until';
import { configSchema } from '@sluice/writer/config';
import kafkajs, { type Kafka } from 'kafkajs';
import { expect } from 'vitest';
import { readClickHouse } from './clickhouse.ts';
import { deleteRecords } from './delete-records.ts';
import { ownClickHouse, ownKafka } from './engines.ts';
import { isOfServers } from './expressions.ts';
import { submitEach } from './halted-partitions.ts';
import { type Pipeline, startPipeline } from './pipeline.ts';
import type { ScrapeTarget } from './prometheus.ts';
import { readAlertRules } from './scaled-rules.ts';
import { type Service, startService } from './service.ts';
import { mountSmallDisk, type SmallDisk } from './small-disk.ts';

const MEBIBYTE = 1_024 * 1_024;
/** Larger than the disk of any machine that runs this, so that a load cannot seem to fill it. It takes no memory. */
const DISK_MEBIBYTES = 4_194_304;
/** What is left of it by the fault. No insert starts with less than 64 MiB. */
const FULL_DISK = { mebibytes: 450, leftBytes: 40 * MEBIBYTE } as const;
const HOUR_MS = 3_600_000;
/** For how long Kafka keeps rows by the fault. */
const KEPT_MS = 900_000;
const READ_PAUSE_MS = 300;

export const RULES = readAlertRules(
  await readFile(join(import.meta.dirname, '..', '..', 'deploy', 'prometheus', 'sluice.rules.yml'), 'utf8'),
);

/** Alerts of several ClickHouse servers, or brokers, cannot fire here, where there is one: `deploy/prometheus/tests`. */
export const ALERTS_OF_ONE_SERVER: readonly string[] = [
  ...new Set(
    RULES.filter(({ expr }) => !isOfServers(expr) && !expr.includes('sluice_kafka_brokers')).map(({ alert }) => alert),
  ),
].sort();

/** A fault, and the alerts that are for it. */
export interface AlertFault {
  readonly alerts: readonly string[];
  readonly what: string;
  readonly cause: () => Promise<unknown>;
}

/** A pipeline with engines of its own, all of whose parts can be made to fail. */
export class AlertFaults implements AsyncDisposable {
  /** Also of services that were started for a fault. */
  readonly targets: ScrapeTarget[];
  readonly running: Pipeline;
  readonly #name: string;
  readonly #owned: AsyncDisposableStack;
  readonly #kafka: Kafka;
  readonly #kafkaProcess: Awaited<ReturnType<typeof ownKafka>>;
  readonly #clickhouseUrl: string;
  readonly #disk: SmallDisk;
  readonly #keys: Buffer;
  readonly #receiver: Receiver;
  #webhook = '';
  #alert = '';

  private constructor(
    owned: AsyncDisposableStack,
    name: string,
    parts: {
      readonly running: Pipeline;
      readonly kafkaProcess: Awaited<ReturnType<typeof ownKafka>>;
      readonly clickhouseUrl: string;
      readonly disk: SmallDisk;
      readonly keys: Buffer;
      readonly receiver: Receiver;
    },
  ) {
    this.#owned = owned;
    this.#name = name;
    this.running = parts.running;
    this.#kafkaProcess = parts.kafkaProcess;
    this.#clickhouseUrl = parts.clickhouseUrl;
    this.#disk = parts.disk;
    this.#keys = parts.keys;
    this.#receiver = parts.receiver;
    const config = loadConfig(configSchema, {
      KAFKA_BROKERS: parts.kafkaProcess.brokers.join(','),
      CLICKHOUSE_URL: parts.clickhouseUrl,
    });
    this.#kafka = createKafka(config, 'test', createLogger('test', 'silent'));
    this.targets = Object.entries(parts.running.services).map(([service, { url }]) => ({
      url,
      job: `sluice-${service}`,
    }));
  }

  /** @param name of the pipeline */
  static async start(name: string): Promise<AlertFaults> {
    await using started = new AsyncDisposableStack();
    const folder = started.use(await makeTempDir()).path;
    const dataDir = join(folder, 'clickhouse');
    const disk = started.use(await mountSmallDisk(dataDir, DISK_MEBIBYTES));
    const [kafkaProcess, clickhouse] = await Promise.all([
      ownKafka(),
      ownClickHouse({ dataDir, logDir: folder, wrap: disk.enter }),
    ]);
    started.use(kafkaProcess);
    started.use(clickhouse);
    const running = started.use(
      await startPipeline({
        kafkaBrokers: kafkaProcess.brokers,
        clickhouseUrl: clickhouse.url,
        name,
        env: { KAFKA_PARTITIONS: '2', PRODUCE_TIMEOUT_MS: '4000', ...WEBHOOKS_ENV },
      }),
    );
    const keys = await readFile(running.keysFile);
    const receiver = started.use(await Receiver.start());
    const parts = { running, kafkaProcess, clickhouseUrl: clickhouse.url, disk, keys, receiver };
    return new AlertFaults(started.move(), name, parts);
  }

  /** Does once what leaves a trace in metrics that dashboards show. */
  async useEverything(): Promise<void> {
    const { services, key } = this.running;
    for (const foreignUserId of ['late', 'gone']) {
      await this.running.submit({ foreignUserGroupId: 'g', foreignUserId, events: [{ event: 'e' }] });
    }
    await this.running.settled(2);
    expect((await this.running.submit({}, { key: 'unknown' })).status).toBe(401);
    const stream = await EventStream.open(`${services['query-api'].url}/events/stream`, { key });
    stream.close();
    await stream.ended;
    // A row that was accepted before its user was deleted, and arrives after that, is dropped.
    const acceptedAt = Date.now() * 1_000;
    expect((await this.running.deleteUser('gone')).status).toBe(202);
    await this.running.drained();
    const row = { workspace_id: 'test', timestamp: Date.now(), uuid: randomUUID(), event: 'e', user_id: 'gone' };
    await this.#produce(JSON.stringify({ ...row, received_at: acceptedAt }));
  }

  /** Queries, with pauses, until it is disposed of. */
  readAllTheTime(): AsyncDisposable {
    let reads = true;
    const reading = (async () => {
      while (reads) {
        await Promise.all([this.running.get('/events?limit=5'), this.running.get('/users/late')]);
        await delay(READ_PAUSE_MS);
      }
    })();
    return {
      [Symbol.asyncDispose]: async () => {
        reads = false;
        await reading;
      },
    };
  }

  /** Faults of a webhook, one after the other. */
  ofWebhooks(): readonly AlertFault[] {
    return [
      {
        alerts: ['SluiceWebhookLagging'],
        what: 'the receiver of a webhook responds with 500',
        cause: async () => {
          this.#receiver.behaviour = (_, response) => response.writeHead(500).end();
          this.#webhook = await this.#create('/webhooks', { url: this.#receiver.url });
          await this.#submitTo(this.running.services['ingest-api']);
        },
      },
      {
        alerts: ['SluiceWebhookPaused'],
        what: 'the receiver of a webhook responds with 410',
        cause: async () => {
          this.#receiver.behaviour = (_, response) => response.writeHead(410).end();
        },
      },
    ];
  }

  /** An alert whose view is gone. It stays until {@link deleteWebhook}. */
  ofAnAlert(): AlertFault {
    return {
      alerts: ['SluiceAlertsFailing'],
      what: 'the view of an alert is deleted',
      cause: async () => {
        // While a receiver fails, the alert is not judged.
        this.#receiver.behaviour = (_, response) => response.writeHead(204).end();
        const view = { name: 'Count', report: 'series', parameters: { interval: 'none' } };
        const id = await this.#create('/views', view);
        const alert = { name: 'Alert', view: id, window: '1h', condition: { is: 'absent' }, url: this.#receiver.url };
        this.#alert = await this.#create('/alerts', alert);
        await this.#manage('DELETE', `/views/${id}`);
        // Whatever changes the condition has it judged anew.
        await this.#manage('PATCH', `/alerts/${this.#alert}`, { condition: { is: 'below', threshold: 1 } });
      },
    };
  }

  /** Deletes the webhook and the alert. */
  async deleteWebhook(): Promise<void> {
    await this.#manage('DELETE', `/webhooks/${this.#webhook}`);
    await this.#manage('DELETE', `/alerts/${this.#alert}`);
  }

  /** Faults of processes, of a clock, of rows, of ClickHouse and of what was forgotten, at the same time. */
  ofEverythingElse(): readonly AlertFault[] {
    const { services, database, keysFile } = this.running;
    return [
      {
        alerts: ['SluiceRetentionNear'],
        what: 'retention.ms of a topic is set to a quarter of an hour',
        cause: () => this.#keepFor(KEPT_MS),
      },
      {
        alerts: ['SluiceErasureLate'],
        what: 'merges are stopped, and a user was deleted 8 hours ago',
        cause: async () => {
          await this.#sql(`SYSTEM STOP MERGES ${database}.events`);
          await this.#sql(`INSERT INTO ${database}.pending_deletions (workspace_id, user_id, version, stored_at)
            VALUES ('test', 'late', ${Date.now() * 1_000}, now64(3) - INTERVAL 8 HOUR)`);
        },
      },
      {
        alerts: ['SluicePartsNearLimit'],
        what: '600 parts, of 1,000 that are allowed, and merges are stopped',
        cause: async () => {
          const table = `${database}.dead_letters`;
          await this.#sql(`SYSTEM STOP MERGES ${table}`);
          await this.#sql(`ALTER TABLE ${table} MODIFY SETTING parts_to_throw_insert = 1000`);
          await this.#sql(`INSERT INTO ${table} (id, row) SELECT toString(number), 'a part' FROM numbers(600)
            SETTINGS max_block_size = 1, max_threads = 1, max_insert_threads = 1, min_insert_block_size_rows = 1`);
        },
      },
      {
        alerts: ['SluiceBackupOld'],
        what: 'the last backup was made two days ago',
        cause: () =>
          this.#sql(`INSERT INTO ${database}.backups (id, started_at, finished_at)
            SELECT generateUUIDv4(), now64(6) - INTERVAL 2 DAY, now64(6) - INTERVAL 2 DAY`),
      },
      {
        alerts: ['SluiceAuditDifferences', 'SluiceAuditLate'],
        what: 'the last audit is three days old, and has found a row missing',
        cause: async () => {
          await this.#sql(`INSERT INTO ${database}.audited_hours (workspace_id, hour, kind, accepted, missing)
            VALUES ('test', toStartOfHour(now()) - INTERVAL 3 DAY, 'events', 1, 1)`);
          await this.#sql(`INSERT INTO ${database}.audits (id, started_at, finished_at, shares, until, balanced_through)
            SELECT generateUUIDv4(), now64(6) - INTERVAL 3 DAY, now64(6) - INTERVAL 3 DAY, 1, now() - INTERVAL 3 DAY,
              now() - INTERVAL 3 DAY`);
        },
      },
      {
        alerts: ['SluiceServersDiffer'],
        what: 'a comparison with another server has found a difference',
        cause: () =>
          this.#sql(`INSERT INTO ${database}.server_comparisons (compared_at, other, through, months, event_count, differing)
            VALUES (now64(3), 'a2', now64(6), 1, 1, ['events'])`),
      },
      { alerts: ['SluiceDeadLetters'], what: 'a row that is no JSON', cause: () => this.#produce('?') },
      {
        alerts: ['SluiceRejecting'],
        what: 'a client sends calls without a user',
        cause: async () => {
          const call = { type: 'track', event: 'e', context: { library: { name: 'analytics-php', version: '3.8.1' } } };
          const { status } = await this.running.submit({ batch: [call] }, { path: '/v1/batch' });
          expect(status).toBe(200);
        },
      },
      {
        alerts: ['SluiceLinksRefused'],
        what: 'a client names one user for everybody',
        cause: async () => {
          const events = Array.from({ length: 1_005 }, (_, index) => ({ event: 'e', anonymousId: `visitor-${index}` }));
          const { status } = await this.running.submit(
            { foreignId: 'everybody', events },
            { path: '/v1/public/users' },
          );
          expect(status).toBe(202);
        },
      },
      { alerts: ['SluiceServiceDown'], what: 'query-api is frozen', cause: async () => services['query-api'].freeze() },
      {
        alerts: ['SluiceClockSkew'],
        what: 'an ingest-api whose clock is an hour ahead',
        cause: async () => {
          const { url } = await this.#startWithWrongClock();
          this.targets.push({ url, job: 'sluice-ingest-api' });
        },
      },
      {
        alerts: ['SluiceMessagesMisplaced'],
        what: 'an ingest-api with another KAFKA_PARTITIONS sends rows',
        cause: async () => {
          const misplacing = await this.#startIngest({ KAFKA_PARTITIONS: '1' });
          await misplacing.ready();
          await this.#submitTo(misplacing);
        },
      },
      { alerts: ['SluiceKeysFileInvalid'], what: 'the keys file is cut off', cause: () => writeFile(keysFile, '{') },
    ];
  }

  /** It hides dead letters: nothing is stored any more. */
  ofTheDisk(): AlertFault {
    return {
      alerts: [
        ...['SluiceClickHouseDiskFilling', 'SluiceBatchesFailing', 'SluiceLagging', 'SluiceStuck'],
        'SluiceObjectiveAtRisk',
      ],
      what: "ClickHouse's disk is full",
      cause: async () => {
        await this.#disk.resize(FULL_DISK.mebibytes);
        await this.#disk.fill(FULL_DISK.leftBytes);
      },
    };
  }

  /** Ends what {@link ofEverythingElse} and {@link ofTheDisk} did to processes, files and the disk. */
  async repair(): Promise<void> {
    await writeFile(this.running.keysFile, this.#keys);
    await this.#disk.free();
    await this.#disk.resize(DISK_MEBIBYTES);
    this.running.services['query-api'].thaw();
    this.targets.length = Object.keys(this.running.services).length;
  }

  ofKafkaDown(): AlertFault {
    return {
      alerts: ['SluiceNotAccepting', 'SluiceRefusing', 'SluiceObjectiveAtRisk'],
      what: 'Kafka is killed under load',
      cause: () => this.#kafkaProcess.kill9(),
    };
  }

  /** Starts Kafka again, without a writer: {@link ofKafkasLosses} starts it. */
  async restartKafka(): Promise<void> {
    await this.running.services.writer.kill9();
    await this.#kafkaProcess.restart();
  }

  /** What Kafka loses, one after the other. */
  ofKafkasLosses(): readonly AlertFault[] {
    const { services } = this.running;
    const topic = `${this.#name}.events`;
    return [
      {
        alerts: ['SluicePartitionHalted'],
        what: 'Kafka deletes rows that are not stored',
        cause: async () => {
          await submitEach(this.running, 20);
          await deleteRecords(this.#kafka, topic, 0);
          services.writer = services.writer.again();
        },
      },
      {
        alerts: ['SluiceMessagesLost'],
        what: 'the topic of events is deleted and created again',
        cause: async () => {
          await this.#createAgain(topic);
          await until('ingest-api to send to the new topic', async () => {
            return (await this.#submitTo(services['ingest-api'])) === 202;
          });
        },
      },
    ];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#owned.disposeAsync();
  }

  /** Returns the id of what a request to query-api creates. */
  async #create(path: string, body: object): Promise<string> {
    const response = await this.#manage('POST', path, body);
    return ((await response.json()) as { id: string }).id;
  }

  async #manage(method: string, path: string, body?: object): Promise<Response> {
    const response = await fetch(`${this.running.services['query-api'].url}${path}`, {
      method,
      headers: { authorization: `Bearer ${this.running.key}`, 'content-type': 'application/json' },
      body: body === undefined ? null : JSON.stringify(body),
    });
    expect([method, path, response.ok]).toEqual([method, path, true]);
    return response;
  }

  async #sql(statement: string): Promise<void> {
    await readClickHouse(this.#clickhouseUrl, statement);
  }

  /** Sends a line to Kafka as it is, which ingest-api would not. */
  async #produce(line: string): Promise<void> {
    const producer = this.#kafka.producer({ allowAutoTopicCreation: false });
    await producer.connect();
    const messages = [{ value: `${line}\n`, headers: messageHeaders('events'), partition: 1 }];
    await producer.send({ topic: `${this.#name}.events`, acks: -1, messages });
    await producer.disconnect();
  }

  async #keepFor(ms: number): Promise<void> {
    const configEntries = [
      { name: 'retention.ms', value: String(ms) },
      // What is not named gets its default.
      { name: 'message.timestamp.type', value: 'LogAppendTime' },
    ];
    const resources = [{ type: kafkajs.ConfigResourceTypes.TOPIC, name: `${this.#name}.events`, configEntries }];
    await withAdmin(this.#kafka, (admin) => admin.alterConfigs({ validateOnly: false, resources }));
  }

  async #createAgain(topic: string): Promise<void> {
    await withAdmin(this.#kafka, async (admin) => {
      await admin.deleteTopics({ topics: [topic] });
      const configEntries = [{ name: 'message.timestamp.type', value: 'LogAppendTime' }];
      await until('Kafka to have deleted it', async () =>
        admin.createTopics({ topics: [{ topic, numPartitions: 2, configEntries }] }).catch(() => false),
      );
    });
  }

  /** Starts another ingest-api, with other variables. It ends with the system. */
  async #startIngest(env: Readonly<Record<string, string>>): Promise<Service> {
    const [port = 0] = await findFreePorts(1);
    const service = startService('ingest-api', port, { ...this.running.environmentOf('ingest-api'), ...env });
    this.#owned.defer(() => service.kill9());
    return service;
  }

  async #startWithWrongClock(): Promise<Service> {
    const preload = fileURLToPath(new URL('shifted-clock.mjs', import.meta.url));
    const skewed = await this.#startIngest({
      NODE_OPTIONS: `--import ${preload}`,
      CLOCK_SHIFT_MS: String(HOUR_MS),
    });
    await eventually(() =>
      fetch(`${skewed.url}/livez`).then(
        ({ status }) => status,
        () => 0,
      ),
    ).toBe(200);
    return skewed;
  }

  /** Submits an event to an ingest-api, and returns the status. */
  async #submitTo({ url }: Service): Promise<number> {
    const response = await fetch(`${url}/v1/public/userGroups`, {
      method: 'POST',
      headers: { authorization: `Bearer ${this.running.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ foreignUserGroupId: 'g', events: [{ event: 'e' }] }),
    });
    await response.arrayBuffer();
    return response.status;
  }
}
