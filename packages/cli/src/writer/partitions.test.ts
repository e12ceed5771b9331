import type { Halt } from '@sluice/storage/protocol/log-gap';
import { describe, expect, test } from 'vitest';
import { whatIsGivenUp } from './partitions.ts';

function halted(reason: Halt['reason'], { low, high, stored }: { low: bigint; high: bigint; stored?: bigint }) {
  const [topic, partition] = ['t', 3];
  const halt = { topic, partition, reason, detail: '', firstOffset: null, lastOffset: null, haltedAt: '' };
  return { topic, partition, low, high, stored, committed: stored, halt };
}

describe('resume says what is given up:', () => {
  test('messages that Kafka deleted before they were stored, and those that are skipped', () => {
    const status = halted('messages are gone', { low: 135n, high: 200n, stored: 120n });
    const deleted = 'Offsets 120 to 134 of t/3 were deleted by Kafka before they were stored: 15 messages.';
    expect(whatIsGivenUp(status, 135n)).toBe(deleted);
    expect(whatIsGivenUp(status, 140n)).toBe(
      `${deleted} Offsets 135 to 139 of t/3 are in the log and are left out: 5 messages.`,
    );
  });

  test('of a log that was cut off: nothing when it is read from the oldest message, else perhaps new messages', () => {
    const status = halted('the log is another one', { low: 0n, high: 60n, stored: 40n });
    const cutOff = 'Messages that were cut off the log before they were stored are lost already.';
    expect(whatIsGivenUp(status, 0n)).toBe(cutOff);
    expect(whatIsGivenUp(status, 40n)).toMatch(/^Offsets 0 to 39 of t\/3 .* 40 messages, some of which may be new/);
  });

  test('of a partition of which ClickHouse has no position: what is not read again', () => {
    const lost = (low: bigint) => ({ ...halted('nothing is stored', { low, high: 60n }), committed: 60n });
    expect(whatIsGivenUp(lost(0n), 0n)).toBe(
      'Nothing is given up: offsets 0 to 59 are read again, and each row is stored once.',
    );
    expect(whatIsGivenUp(lost(5n), 60n)).toBe(
      'Offsets 0 to 4 of t/3 are no longer in Kafka: 5 messages. Offsets 5 to 59 of t/3 are in the log and are left out: ' +
        '55 messages. They are missing unless ClickHouse has their rows.',
    );
  });

  test('nothing, when it was halted by hand and resumes where it was or before', () => {
    const status = halted('by hand', { low: 0n, high: 60n, stored: 40n });
    expect(whatIsGivenUp(status, 40n)).toBe('Nothing is given up.');
    expect(whatIsGivenUp(status, 10n)).toBe(
      'Nothing is given up: offsets 10 to 39 are read again, and each row is stored once.',
    );
    expect(whatIsGivenUp(status, 45n)).toMatch(/^Offsets 40 to 44 .* 5 messages/);
  });
});
