import { expect, test } from 'vitest';
import { type PendingRows, packMessages, placeRows, takeBundles } from './row-packing.ts';
import type { Waiter } from './row-publisher.ts';
import type { OutgoingRow } from './submission-rows.ts';

const COUNTS = { events: 3, entities: 2 };
const waiter: Waiter = { remaining: 0, expired: false, acknowledged: () => undefined };

function row(line: string, hash: OutgoingRow['hash'], topic: OutgoingRow['topic'] = 'events'): OutgoingRow {
  return { topic, kind: topic === 'events' && hash !== 'all' ? 'events' : 'changes', hash, line };
}

function place(rows: readonly OutgoingRow[]): PendingRows[] {
  return placeRows(rows, COUNTS, waiter);
}

test('rows for one partition stay together and in order, and no other row is among them', () => {
  const placed = place([row('a', 0), row('b', 4), row('c', 3), row('d', 0, 'entities'), row('deletion', 'all')]);
  expect(placed.map(({ topic, partition, kind, lines }) => [topic, partition, kind, lines])).toEqual([
    ['events', 0, 'events', 'a\nc\n'],
    ['events', 1, 'events', 'b\n'],
    ['entities', 0, 'changes', 'd\n'],
    ['events', 0, 'changes', 'deletion\n'],
    ['events', 1, 'changes', 'deletion\n'],
    ['events', 2, 'changes', 'deletion\n'],
  ]);
});

test('a submission of any size can be sent: messages and sends are bounded, and nothing is lost or reordered', () => {
  const lines = Array.from({ length: 5_000 }, (_, index) => `${index} ${'€'.repeat(300)}`);
  let pending = place(lines.map((line) => row(line, 1)));
  let text = '';
  let sends = 0;
  while (pending.length > 0) {
    const { bundles, rest } = takeBundles(pending);
    const messages = bundles.flatMap(packMessages);
    const sizes = messages.map(({ value }) => (value as Buffer).length);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(256 * 1_024);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(900 * 1_024);
    text += messages.map(({ value }) => String(value)).join('');
    pending = rest;
    sends += 1;
  }
  expect(text).toBe(`${lines.join('\n')}\n`);
  expect(sends).toBeGreaterThan(4);
});

test('a message holds rows of one kind', () => {
  const { bundles } = takeBundles(place([row('a', 0), row('b', 0), row('deletion', 'all'), row('c', 0)]));
  const first = bundles.find(({ partition }) => partition === 0);
  const messages = first ? packMessages(first) : [];
  expect(messages.map(({ headers, value }) => [headers?.['kind'], String(value)])).toEqual([
    ['events', 'a\nb\n'],
    ['changes', 'deletion\n'],
    ['events', 'c\n'],
  ]);
});
