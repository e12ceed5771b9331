import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { messageHeaders } from '@sluice/shared/rows';
import { eventHash } from '@sluice/shared/rows/row-hashes';
import { eventually } from '@sluice/shared/testing/eventually';
import { until } from '@sluice/shared/testing/until';
import { expect, inject, test } from 'vitest';
import { cpuTimeUs } from '../../bench/measure/cpu-time.ts';
import { expectBalanced, sumsOf } from '../kit/audit.ts';
import { startSluice } from '../kit/backups.ts';
import { readClickHouse } from '../kit/clickhouse.ts';
import { ownClickHouse } from '../kit/engines.ts';
import { readiness } from '../kit/halted-partitions.ts';
import { kafkaClient } from '../kit/kafka-client.ts';
import { startLoad } from '../kit/load.ts';
import { operatorOf } from '../kit/operator.ts';
import { type Pipeline, startPipeline } from '../kit/pipeline.ts';
import { expectExactlyOnce, verifyDelivery } from '../kit/verify-delivery.ts';

const [kafkaBrokers, clickhouseUrl] = [inject('kafkaBrokers'), inject('clickhouseUrl')];

const HOUR_MS = 3_600_000;
const MEMORY_MAX = 512 * 1_024 * 1_024;

const VISIBLE_OTHERS = `
  SELECT count() FROM events
  LEFT JOIN (SELECT user_id AS person, max(version) AS deleted FROM user_deletions GROUP BY person) AS deletions
    ON person = events.user_id
  WHERE event != 'load' AND toUnixTimestamp64Micro(received_at) > deleted`;

test('a load with kills, repeats, deletions and changes balances', async () => {
  await using pipeline = await startPipeline({ kafkaBrokers, clickhouseUrl, name: 'auditload' });
  await using load = startLoad({ pipeline, urls: () => [pipeline.services['ingest-api'].url], concurrency: 4 });
  for (let times = 0; times < 4; times += 1) {
    await eventually(() => load.acceptedSoFar(), { timeout: 120_000 }).toBeGreaterThan(150 * (times + 1));
    await pipeline.killAndRestart(times % 2 === 0 ? 'writer' : 'ingest-api');
    // While everything runs: nothing is missing yet.
    await expectBalanced(pipeline);
  }
  const tally = await load.stop();
  await pipeline.drained();
  const books = await expectBalanced(pipeline);
  expect([books.notes, sumsOf(books, 'events').waiting, sumsOf(books, 'events').unknown]).toEqual([
    [],
    undefined,
    undefined,
  ]);
  await expectExactlyOnce(pipeline, clickhouseUrl, tally);
  // What clients were told agrees with the books. What is set once comes as an event as well.
  const { visible } = await verifyDelivery(pipeline, clickhouseUrl, tally);
  const others = await readClickHouse(clickhouseUrl, VISIBLE_OTHERS, { database: pipeline.database });
  expect(sumsOf(books, 'events').stored).toBe(visible + Number(others));
});

const EVENTS = Number(process.env['SLUICE_AUDITED_EVENTS'] ?? 1_000_000);
const PARTITIONS = 6;
/** How many are sent at once: a request to a partition has a limit of its bytes. */
const SENT = 5_000;

/** Sends events to Kafka as ingest-api does, received three hours ago. Returns one of them, and its place. */
async function produceMany(): Promise<{ readonly uuid: string; readonly partition: number }> {
  const producer = kafkaClient(kafkaBrokers).producer({ allowAutoTopicCreation: false });
  await producer.connect();
  const begin = Date.now() - 3 * HOUR_MS;
  let uuid = '';
  for (let from = 0; from < EVENTS; from += SENT) {
    const lines = new Map<number, string[]>();
    for (let index = from; index < Math.min(EVENTS, from + SENT); index += 1) {
      uuid = randomUUID();
      const timestamp = begin + Math.floor(index / 100);
      const row = {
        ...{ workspace_id: `w${index % 10}`, timestamp, uuid, event: 'e', user_id: `u${index % 50_000}` },
        properties: { path: `/pages/${index % 1_000}`, text: 'x'.repeat(200) },
        received_at: timestamp * 1_000 + (index % 1_000),
      };
      const partition = eventHash(uuid) % PARTITIONS;
      lines.set(partition, lines.get(partition) ?? []);
      lines.get(partition)?.push(JSON.stringify(row));
    }
    const messages = [...lines].flatMap(([partition, all]) =>
      Array.from({ length: Math.ceil(all.length / 500) }, (_, part) => ({
        partition,
        headers: { ...messageHeaders('events'), partitions: String(PARTITIONS) },
        value: `${all.slice(part * 500, part * 500 + 500).join('\n')}\n`,
      })),
    );
    await producer.send({ topic: 'auditsize.events', acks: -1, messages });
  }
  await producer.disconnect();
  return { uuid, partition: eventHash(uuid) % PARTITIONS };
}

/** Runs the command, and returns what it printed and used. */
async function measure(pipeline: Pipeline, work: string, ...args: string[]) {
  const { child, ended } = startSluice(pipeline, ['audit', '--since', '6h', '--work', work, ...args]);
  const pid = child.pid ?? 0;
  let [memory, cpuUs, isOver] = [0, 0, false];
  const watching = (async () => {
    while (!isOver) {
      const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
      memory = Math.max(memory, 1_024 * Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0));
      cpuUs = Math.max(cpuUs, await cpuTimeUs(pid).catch(() => 0));
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  })();
  const { code, output } = await ended;
  isOver = true;
  await watching;
  return { code, output, memory, cpuUs };
}

test('a million events: memory, cost, killed and resumed, and one row that is deleted by hand', async () => {
  await using engine = await ownClickHouse();
  const { url } = engine;
  await using pipeline = await startPipeline({ kafkaBrokers, clickhouseUrl: url, name: 'auditsize' });
  await using work = await makeTempDir();
  const ofEngine = () => cpuTimeUs(engine.pid ?? 0);
  const ofStoring = async () => (await ofEngine()) + (await cpuTimeUs(pipeline.services.writer.pid));
  const before = await ofStoring();
  const { uuid, partition } = await produceMany();
  await pipeline.drained();
  const stored = await ofStoring();
  const sql = (statement: string) => readClickHouse(url, statement, { database: pipeline.database });

  const quiet = await ofEngine();
  const whole = await measure(pipeline, work.path, '--rate', '0');
  const costs = { storing: stored - before, command: whole.cpuUs, engine: (await ofEngine()) - quiet };
  console.log(`CPU in microseconds ${JSON.stringify(costs)}, memory ${whole.memory}`);
  expect(whole).toMatchObject({
    code: 0,
    output: expect.stringContaining(`${EVENTS.toLocaleString('en')} rows were accepted`),
  });
  expect(whole.memory).toBeLessThan(MEMORY_MAX);
  expect(costs.command + costs.engine).toBeLessThan(costs.storing);

  const killed = startSluice(pipeline, ['audit', '--since', '6h', '--work', work.path, '--rate', '10']);
  const entries = async () => await sql('SELECT count() FROM audits FINAL WHERE finished_at IS NULL');
  await until('it to have begun', async () => (await entries()) === '1');
  await new Promise((resolve) => setTimeout(resolve, 12_000));
  killed.child.kill('SIGKILL');
  await killed.ended;
  await sql(`ALTER TABLE events DELETE WHERE uuid = '${uuid}'`);
  const resumed = await measure(pipeline, work.path, '--rate', '10');
  expect(resumed.output).toContain('goes on where it was');
  expect(resumed.code).toBe(1);
  const [, offset = ''] =
    new RegExp(`missing: events of w\\d, ${uuid} at auditsize.events/${partition}@(\\d+):`).exec(resumed.output) ?? [];

  const operate = operatorOf({ kafkaBrokers, clickhouseUrl: url, name: 'auditsize', database: pipeline.database });
  await operate('halt', `auditsize.events/${partition}`);
  await eventually(() => readiness(pipeline.services.writer)).toContain('is halted');
  expect((await operate('resume', `auditsize.events/${partition}`, '--from', offset, '--yes')).code).toBe(0);
  await until(
    'the row to be stored again',
    async () => (await sql(`SELECT count() FROM events WHERE uuid = '${uuid}'`)) === '1',
  );
  expect((await measure(pipeline, work.path, '--rate', '0')).code).toBe(0);
});
