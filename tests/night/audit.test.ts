import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { eventually } from '@sluice/shared/testing/eventually';
import { until } from '@sluice/shared/testing/until';
import { expect, inject, test } from 'vitest';
import { producePastEvents } from '../../bench/data/past-events.ts';
import { cpuTimeUs } from '../../bench/measure/cpu-time.ts';
import { measureAudit } from '../../bench/measure/measured-audit.ts';
import { differencesOf, expectBalanced, sumsOf } from '../kit/audit.ts';
import { compareEvents } from '../kit/audited-events.ts';
import { startSluice } from '../kit/backups.ts';
import { readClickHouse } from '../kit/clickhouse.ts';
import { ownClickHouse } from '../kit/engines.ts';
import { readiness } from '../kit/halted-partitions.ts';
import { startLoad } from '../kit/load.ts';
import { operatorOf } from '../kit/operator.ts';
import { startPipeline } from '../kit/pipeline.ts';
import { expectExactlyOnce, verifyDelivery } from '../kit/verify-delivery.ts';

const [kafkaBrokers, clickhouseUrl] = [inject('kafkaBrokers'), inject('clickhouseUrl')];

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
  // What clients were told agrees with the books, event by event.
  const { books, different } = await compareEvents(pipeline, { clickhouseUrl, database: pipeline.database, tally });
  expect([...differencesOf(books), ...books.notes, ...different]).toEqual([]);
  expect([sumsOf(books, 'events').waiting, sumsOf(books, 'events').unknown]).toEqual([undefined, undefined]);
  await expectExactlyOnce(pipeline, clickhouseUrl, tally);
  // What is set once comes as an event as well.
  const { visible } = await verifyDelivery(pipeline, clickhouseUrl, tally);
  const others = await readClickHouse(clickhouseUrl, VISIBLE_OTHERS, { database: pipeline.database });
  expect(sumsOf(books, 'events').stored).toBe(visible + Number(others));
});

const EVENTS = Number(process.env['SLUICE_AUDITED_EVENTS'] ?? 1_000_000);
const PARTITIONS = 6;

test('a million events: memory, cost, killed and resumed, and one row that is deleted by hand', async () => {
  await using engine = await ownClickHouse();
  const { url } = engine;
  await using pipeline = await startPipeline({ kafkaBrokers, clickhouseUrl: url, name: 'auditsize' });
  await using work = await makeTempDir();
  const ofEngine = () => cpuTimeUs(engine.pid ?? 0);
  const ofStoring = async () => (await ofEngine()) + (await cpuTimeUs(pipeline.services.writer.pid));
  const before = await ofStoring();
  const ofLog = { kafkaBrokers, topic: 'auditsize.events', partitions: PARTITIONS, events: EVENTS };
  const { uuid, partition } = await producePastEvents(ofLog);
  await pipeline.drained();
  const stored = await ofStoring();
  const sql = (statement: string) => readClickHouse(url, statement, { database: pipeline.database });

  const quiet = await ofEngine();
  const whole = await measureAudit(pipeline, '--work', work.path, '--rate', '0');
  const costs = { storing: stored - before, command: whole.cpuUs, engine: (await ofEngine()) - quiet };
  console.log(`CPU in microseconds ${JSON.stringify(costs)}, memory ${whole.memory}, ${Math.round(whole.ms)} ms`);
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
  const resumed = await measureAudit(pipeline, '--work', work.path, '--rate', '10');
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
  expect((await measureAudit(pipeline, '--work', work.path, '--rate', '0')).code).toBe(0);
});
