import { packMessages } from '@sluice/submissions/rows/message-packing';
import { type OutgoingRow, type PartitionRows, RowCollector } from '@sluice/submissions/rows/partition-rows';
import { expect, test } from 'vitest';
import { PartitionQueue, type QueuedRows } from './partition-queue.ts';

function row(line: string, hash: OutgoingRow['hash'], topic: OutgoingRow['topic'] = 'events'): OutgoingRow {
  return { topic, kind: topic === 'events' && hash !== 'all' ? 'events' : 'changes', hash, line };
}

function collect(rows: readonly OutgoingRow[]): readonly PartitionRows[] {
  const collector = new RowCollector(3, () => undefined);
  for (const item of rows) collector.add(item);
  return collector.finish();
}

function queued(rows: PartitionRows, workspace = 'a'): QueuedRows {
  const callbacks = { acknowledged: () => undefined, refused: () => undefined };
  return { ...rows, workspace, span: undefined, expired: false, ...callbacks };
}

test('rows for one partition stay together and in order, without rows for others', () => {
  const collected = collect([row('a', 0), row('b', 4), row('c', 3), row('d', 0, 'entities'), row('deletion', 'all')]);
  expect(collected.map(({ topic, partition, kind, lines }) => [topic, partition, kind, String(lines)])).toEqual([
    ['events', 0, 'events', 'a\nc\n'],
    ['events', 1, 'events', 'b\n'],
    ['events', 0, 'changes', 'deletion\n'],
    ['events', 1, 'changes', 'deletion\n'],
    ['events', 2, 'changes', 'deletion\n'],
    ['entities', 0, 'changes', 'd\n'],
  ]);
});

test('a submission of any size can be sent: messages and sends are bounded, and no row is lost or reordered', () => {
  const lines = Array.from({ length: 5_000 }, (_, index) => `${index} ${'€'.repeat(300)}`);
  const queue = new PartitionQueue();
  for (const rows of collect(lines.map((line) => row(line, 1)))) queue.add(queued(rows));
  let text = '';
  let sends = 0;
  while (!queue.isEmpty) {
    const messages = packMessages(1, queue.take(900 * 1_024), 3);
    const sizes = messages.map(({ value }) => (value as Buffer).length);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(256 * 1_024);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(900 * 1_024);
    text += messages.map(({ value }) => String(value)).join('');
    sends += 1;
  }
  expect(text).toBe(`${lines.join('\n')}\n`);
  expect(sends).toBeGreaterThan(4);
});

test('a message holds rows of one kind', () => {
  const first = collect([row('a', 0), row('b', 0), row('deletion', 'all'), row('c', 0)]).filter(
    ({ partition }) => partition === 0,
  );
  expect(packMessages(0, first, 3).map(({ headers, value }) => [headers?.['kind'], String(value)])).toEqual([
    ['events', 'a\nb\n'],
    ['changes', 'deletion\n'],
    ['events', 'c\n'],
  ]);
});

test('a workspace does not wait behind the backlog of another, and rows of an expired request leave the queue', () => {
  const queue = new PartitionQueue();
  const rows = (workspace: string, name: string) => {
    const item = queued({ topic: 'events', partition: 0, kind: 'events', lines: Buffer.from(`${name}\n`) }, workspace);
    queue.add(item);
    return item;
  };
  const [, second] = ['a1', 'a2', 'a3', 'a4'].map((name) => rows('a', name));
  rows('b', 'b1');
  rows('b', 'b2');
  if (second) queue.remove(second);
  const names = (items: readonly QueuedRows[]) => items.map(({ lines }) => String(lines).trim());
  expect(names(queue.take(6))).toEqual(['a1', 'b1']);
  expect(names(queue.take(1))).toEqual(['a3']);
  expect(names(queue.take(100))).toEqual(['b2', 'a4']);
  expect(queue.isEmpty).toBe(true);
});
