import { MemoryBudget, type Reservation } from '@sluice/shared/http/memory-budget';
import { eventually } from '@sluice/shared/testing/eventually';
import { expect, test } from 'vitest';
import type { Row } from '../store/clickhouse-reader.ts';
import { OneStore } from '../store/stores.ts';
import { LOCAL_TABLES } from '../store/tables.ts';
import { ALL_VISIBLE } from '../testing/all-visible.ts';
import { StreamListener } from './stream-listener.ts';
import { endOfBlock } from './stream-position.ts';
import { StreamReader } from './stream-reader.ts';

// Listeners of two workspaces, of which one has no memory for what waits for its clients.

const START = new Map([[0, endOfBlock(1)]]);
const EVENTS = 6;
const TEXT = 'x'.repeat(40_000);

function rowOf(index: number): Row {
  const time = `2026-03-01 12:00:0${index}.000`;
  const uuid = `00000000-0000-4000-8000-00000000000${index}`;
  const event = [uuid, 'track', 'e', '', '', '', '', JSON.stringify({ text: TEXT }), '{}', '{}', time, `${time}000`];
  // Belongs to the selections of both listeners.
  return [...event, 0, 2, [0, 1]];
}

/** Opens a stream of a workspace. */
function listenTo(budget: MemoryBudget, workspace: string) {
  const selection = { workspace, fields: [], properties: [] };
  const memory = budget.open({ hash: workspace, workspace });
  const request = { selection, key: workspace, weight: 1, isAllowed: () => true, memory };
  return {
    memory,
    listener: new StreamListener(request, { source: { idOf: () => '' }, position: START, throughMs: 0 }),
  };
}

/** @param batches of rows, as they come from ClickHouse */
function readerOf(batches: readonly (readonly Row[])[]): StreamReader {
  return new StreamReader({
    queryRunner: {
      rows: async function* () {
        yield* batches;
      },
    } as never,
    stores: new OneStore({ name: '', reader: undefined as never, tables: LOCAL_TABLES, visibility: ALL_VISIBLE }),
    signal: new AbortController().signal,
    onSent: () => undefined,
  });
}

const ROWS = Array.from({ length: EVENTS }, (_, index) => rowOf(index));
const RANGE = { from: START, to: new Map([[0, endOfBlock(2)]]) };

/** Takes all memory but that of two events. */
function fill({ memory }: ReturnType<typeof listenTo>): Reservation {
  const held = memory.part();
  while (memory.fits(100_000)) held.grow(10_000);
  return held;
}

test('a listener that there is no memory for gets the same events later, and the others get them now', async () => {
  const budget = new MemoryBudget(4_000_000);
  const [full, other] = [listenTo(budget, 'full'), listenTo(budget, 'other')];
  const reader = readerOf([ROWS]);
  const held = fill(full);
  await reader.deliver([full.listener, other.listener], RANGE);
  expect([full, other].map(({ listener }) => listener.isLeftOut)).toEqual([true, false]);
  // The clients read only now: what they have read frees memory.
  const received = new Map([full, other].map(({ listener }) => [listener, '']));
  for (const listener of received.keys()) {
    listener.body.on('data', (chunk) => received.set(listener, received.get(listener) + String(chunk)));
  }
  await eventually(() => uuidsIn(received.get(other.listener))).toHaveLength(EVENTS);
  await eventually(() => full.listener.body.readableLength).toBe(0);
  expect(uuidsIn(received.get(full.listener)).length).toBeLessThan(EVENTS);
  held.release();
  full.listener.refresh();
  await reader.deliver([full.listener], { ...RANGE, from: full.listener.position });
  await eventually(() => uuidsIn(received.get(full.listener))).toEqual(uuidsIn(received.get(other.listener)));
  for (const { listener, memory } of [full, other]) {
    listener.refresh();
    expect(memory.bytes).toBe(0);
  }
});

test('a listener that there is no memory for in the midst of what is read alone for it ends the read', async () => {
  const full = listenTo(new MemoryBudget(4_000_000), 'full');
  const reader = readerOf([ROWS.slice(0, 4), ROWS.slice(4)]);
  const held = fill(full);
  await reader.deliver([full.listener], RANGE);
  expect(full.listener.isLeftOut).toBe(true);
  let received = '';
  full.listener.body.on('data', (chunk) => {
    received += String(chunk);
  });
  await eventually(() => full.listener.body.readableLength).toBe(0);
  held.release();
  full.listener.refresh();
  await reader.deliver([full.listener], { ...RANGE, from: full.listener.position });
  await eventually(() => uuidsIn(received)).toHaveLength(EVENTS);
});

function uuidsIn(text = ''): readonly string[] {
  return [...text.matchAll(/"uuid":"([^"]+)"/g)].map(([, uuid = '']) => uuid);
}
