import { eventually } from '@sluice/shared/testing/eventually';
import { expect, inject, onTestFinished, test } from 'vitest';
import { startMirrors } from '../testing/mirrors.ts';
import { anEvent } from '../testing/query-service.ts';
import { listenTo, PATIENCE } from '../testing/streams.ts';

test('a stream leaves a server that answers polls, and not the queries of streams, once that has lasted', async () => {
  const mirrors = await startMirrors(inject('clickhouseUrl'), ['a1', 'a2'], {
    ...{ STREAM_INTERVAL_MS: '50', READ_LAG_MS_MAX: '60000', READ_STALE_MS_MAX: '600000' },
  });
  onTestFinished(() => mirrors.stop());
  const { a1, a2 } = mirrors;
  const streams = await listenTo(mirrors);
  for (const { progress } of mirrors.mirrors) {
    await progress(0, Date.now() - 60_000);
    await progress();
  }
  const stream = await streams.open();
  await a1.clickHouse.command({ query: 'DROP TABLE events SYNC' });
  const event = anEvent();
  await a2.store('a', [event]);
  await eventually(() => stream.uuids, PATIENCE).toEqual([event.uuid]);
  expect(stream.moves).toMatchObject([{ from: 'a1', to: 'a2' }]);
});
