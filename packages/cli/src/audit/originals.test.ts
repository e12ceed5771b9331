import fc from '@sluice/shared/testing/fast-check';
import { repeatsAmong } from '@sluice/storage/protocol/repeats';
import { expect, test } from 'vitest';
import { Originals } from './originals.ts';

const MINUTE_MS = 60_000;

/** An event of one uuid: when it was received, whether it is stamped, and its own time otherwise. */
const anyEvent = fc.record({
  received: fc.integer({ min: 0, max: 40 }).map((minutes) => 1_700_000_000_000 + minutes * MINUTE_MS),
  own: fc.option(fc.integer({ min: 0, max: 40 }).map((minutes) => 1_700_000_000_000 + minutes * MINUTE_MS)),
});

test('an event repeats a stored one for the audit as it does for the writer', () => {
  fc.assert(
    fc.property(fc.array(anyEvent, { maxLength: 12 }), (events) => {
      const submitted = events.map(({ received, own }, place) => ({
        ...{ place, workspace_id: 'w', uuid: 'u', time_ms: own ?? received },
        timed_by_receipt: ((own ?? received) === received ? 1 : 0) as 0 | 1,
        stamped: (own === null ? 1 : 0) as 0 | 1,
      }));
      const repeated = new Set(repeatsAmong(submitted));
      const stored = new Originals();
      for (const { place, time_ms: ms } of submitted) {
        const received = (events[place]?.received ?? 0) * 1_000;
        const isRepeat = stored.hasOriginalOf({ ms, received }, submitted[place]?.stamped === 1);
        expect(isRepeat).toBe(repeated.has(place));
        if (!isRepeat) stored.add({ ms, received }, Number.POSITIVE_INFINITY);
      }
    }),
  );
});
