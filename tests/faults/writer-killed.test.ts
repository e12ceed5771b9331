import { until } from '@sluice/shared/testing/until';
import { afterEach, expect, inject, test } from 'vitest';
import { readClickHouse } from '../support/clickhouse.ts';
import { startLoad } from '../support/load.ts';
import { type Pipeline, startPipeline } from '../support/pipeline.ts';
import { type Moment, type StatementProxy, startStatementProxy } from '../support/statement-proxy.ts';
import { expectExactlyOnce } from '../support/verify-delivery.ts';

const clickhouseUrl = inject('clickhouseUrl');
let pipeline: Pipeline | undefined;
let proxy: StatementProxy | undefined;
/** Where the writer is killed next. */
let target: { readonly name: string; readonly moment: Moment } | undefined;

afterEach(async () => {
  await pipeline?.stop();
  await proxy?.[Symbol.asyncDispose]();
});

/** A pipeline whose writer is killed at the target, and started again. */
async function start(name: string): Promise<Pipeline> {
  proxy = await startStatementProxy(clickhouseUrl, async (statement, moment) => {
    if (statement !== target?.name || moment !== target.moment) return 'go on';
    target = undefined;
    await pipeline?.services.writer.kill9();
    return 'go on';
  });
  const kafkaBrokers = inject('kafkaBrokers');
  pipeline = await startPipeline({ kafkaBrokers, clickhouseUrl: proxy.url, name });
  pipeline.supervise('writer');
  return pipeline;
}

async function killWriterAt(name: string, moment: Moment): Promise<void> {
  target = { name, moment };
  await until(`the writer to be killed ${moment} ${name}`, async () => target === undefined);
}

test('the writer is killed around its insert: the next one stores its batch once', async () => {
  const running = await start('killed');
  await using load = startLoad({ pipeline: running, urls: () => [running.services['ingest-api'].url], concurrency: 8 });
  await killWriterAt('load-events', 'after');
  await killWriterAt('store-events', 'before');
  await killWriterAt('store-events', 'after');
  await expectExactlyOnce(running, clickhouseUrl, await load.stop());
});

test('the writer is killed while it erases deleted users: the next one completes the erasure', async () => {
  const running = await start('erasing');
  for (const user of ['a', 'b', 'stays']) {
    const events = Array.from({ length: 20 }, () => ({ event: 'e' }));
    await running.submit({ foreignUserGroupId: 'g', foreignUserId: user, events });
    await running.submit({ foreignId: user, properties: { plan: 'pro' } }, { path: '/v1/public/users' });
  }
  await running.settled(60);
  for (const user of ['a', 'b']) expect((await running.deleteUser(user)).status).toBe(202);
  await killWriterAt('erase-events', 'after');
  await killWriterAt('erase-properties', 'before');
  await until('all of it to be erased', async () => {
    const counts = await rowsOfUsers(running.database);
    return counts === 'stays\t20\t1';
  });
  await running.submit({ foreignUserGroupId: 'g', foreignUserId: 'a', events: [{ event: 'back' }] });
  await running.settled(21);
});

/** The users that have rows, with how many of events and of properties. */
async function rowsOfUsers(database: string): Promise<string> {
  const sql = `
    SELECT user, sum(events), sum(properties)
    FROM (
      SELECT user_id AS user, count() AS events, 0 AS properties FROM ${database}.events GROUP BY user_id
      UNION ALL
      SELECT id AS user, 0 AS events, uniqExact(property) AS properties
      FROM ${database}.entity_properties WHERE kind = 'user' GROUP BY id
    )
    GROUP BY user ORDER BY user FORMAT TSV`;
  return await readClickHouse(clickhouseUrl, sql);
}
