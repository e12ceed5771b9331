import { setTimeout as wait } from 'node:timers/promises';
import { eventually } from '@sluice/shared/testing/eventually';
import { expect, inject, onTestFinished, test } from 'vitest';
import { ClickHouseException } from '../store/read-failures.ts';
import { metric } from '../testing/load.ts';
import { anEvent, startQuery, type TestEvent } from '../testing/query-service.ts';
import { readerWith } from '../testing/reader-with.ts';
import { expectEvents, listenTo, PATIENCE, someEvents } from '../testing/streams.ts';

/** Events of this workspace cannot be read in time. */
const SLOW_WORKSPACE = 'a';

/** So long a query takes that runs out of its time, in milliseconds: others that were found by halving it would wait too long. */
const LATE_MS = 2_100;

test('a stream whose events cannot be read in time waits and goes on, and those of others go on meanwhile', async () => {
  let isSlow = true;
  const timedOut = new Set<string>();
  const slow = await startQuery(inject('clickhouseUrl'), { STREAM_INTERVAL_MS: '50' }, (reader) =>
    readerWith(reader, {
      async *read(request) {
        const workspaces = (request.params['workspaces'] ?? []) as readonly string[];
        if (isSlow && request.queryId.includes('/stream_events/') && workspaces.includes(SLOW_WORKSPACE)) {
          await wait(LATE_MS);
          timedOut.add(workspaces.join());
          throw new ClickHouseException(159, 'Timeout exceeded');
        }
        yield* reader.read(request);
      },
    }),
  );
  const clients = await listenTo(slow);
  onTestFinished(async () => {
    await clients.closeAll();
    await slow.stop();
  });
  const waiting = await clients.open('', { workspace: SLOW_WORKSPACE });
  const others = [await clients.open('', { workspace: 'b' }), await clients.open('', { workspace: 'c' })];
  const [own, next] = someEvents(2);
  const ofOthers: TestEvent[] = [];
  await slow.store(SLOW_WORKSPACE, [own as TestEvent]);
  for (const workspace of ['b', 'c', 'b', 'c']) {
    const event = anEvent();
    ofOthers.push(event);
    await slow.store(workspace, [event]);
  }
  for (const [index, other] of others.entries()) {
    await expectEvents(
      other,
      ofOthers.filter((_, place) => place % 2 === index),
    );
  }
  // It was also read alone, and nothing is left that others use of its time.
  await eventually(() => timedOut.has(SLOW_WORKSPACE), PATIENCE).toBe(true);
  expect(waiting.events).toEqual([]);
  isSlow = false;
  await slow.store(SLOW_WORKSPACE, [next as TestEvent]);
  await expectEvents(waiting, [own as TestEvent, next as TestEvent]);
  expect(waiting.problems).toEqual([]);
  expect(await metric(slow, 'sluice_stream_ended_total{reason="failed"}')).toBe(0);
});
