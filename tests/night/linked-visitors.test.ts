import { mergeKeyOf } from '@sluice/shared/rows/merged-user';
import { until } from '@sluice/shared/testing/until';
import { expect, inject, test } from 'vitest';
import { readClickHouse } from '../kit/clickhouse.ts';
import { startPipeline } from '../kit/pipeline.ts';

const [kafkaBrokers, clickhouseUrl] = [inject('kafkaBrokers'), inject('clickhouseUrl')];

test('of a deleted user the visitors are erased from the disk as well, with what linked them, and those of others stay', async () => {
  await using pipeline = await startPipeline({
    ...{ kafkaBrokers, clickhouseUrl, name: 'linkedvisitors' },
    env: { STATEMENT_TIMEOUT_MS: '5000', ERASURE_DELAY_MS: '5001', ERASURE_GATHER_MS: '0', ERASURE_INTERVAL_MS: '200' },
  });
  const { database } = pipeline;
  const read = async (sql: string) =>
    (await readClickHouse(clickhouseUrl, `${sql} FORMAT TSV`, { database })).split('\n').filter(Boolean);
  const send = async (...batch: readonly object[]) =>
    expect((await pipeline.submit({ batch }, { path: '/v1/batch' })).status).toBe(200);
  const visit = (anonymousId: string, event: string) => ({ type: 'track', anonymousId, event });
  await send(
    ...[visit('phone', 'jane on her phone'), visit('desk', 'jane on her desk'), visit('other', 'somebody else')],
    ...[visit('shared', 'ann on a tablet that jane uses later'), visit('said', 'jane, as somebody says')],
    { type: 'identify', userId: 'jane', anonymousId: 'phone' },
    { type: 'track', userId: 'jane', anonymousId: 'desk', event: 'jane herself' },
    { type: 'identify', userId: 'ann', anonymousId: 'shared' },
  );
  await send({ type: 'identify', userId: 'jane', anonymousId: 'shared' });
  expect((await pipeline.submit({ anonymousId: 'said', userId: 'jane' }, { path: '/v1/identities' })).status).toBe(202);
  await send(
    visit('tablet', 'jane on a tablet, with the account that she had before'),
    { type: 'identify', userId: 'old jane', anonymousId: 'tablet' },
    { type: 'track', userId: 'old jane', event: 'jane with the account that she had before' },
  );
  const merge = { userId: 'old jane', into: 'jane' };
  expect((await pipeline.submit(merge, { path: '/v1/identities/merge' })).status).toBe(202);
  await pipeline.drained();
  expect(await read("SELECT anonymous_id FROM identity_links WHERE user_id = 'jane' ORDER BY 1")).toEqual([
    ...['desk', 'phone', 'said', 'shared', mergeKeyOf('old jane')],
  ]);
  expect((await pipeline.deleteUser('jane')).status).toBe(202);
  await until('nothing is left to erase', async () => {
    const pending = await read('SELECT user_id FROM pending_deletions');
    const deleted = await read("SELECT 1 FROM user_deletions WHERE user_id = 'old jane'");
    return pending.length === 0 && deleted.length > 0;
  });
  expect(await read('SELECT event FROM events ORDER BY 1')).toEqual([
    ...['ann on a tablet that jane uses later', 'identify', 'somebody else'],
  ]);
  expect(await read('SELECT anonymous_id, user_id FROM identity_links')).toEqual(['shared\tann']);
});
