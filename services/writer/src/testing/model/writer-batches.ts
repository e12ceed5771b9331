import { newBatch } from '../../protocol/steps.ts';
import type { Rules } from './rules.ts';
import type { Batch, Fetch, RowId, World, Writer } from './world.ts';
import { freshId } from './world-key.ts';
import { halt } from './writer-partitions.ts';
import { contentsOf, send, sendNext } from './writer-statements.ts';

/*
 * The way of a batch through a writer: rows are fetched from Kafka and delivered, the batch begins to be stored, and is
 * committed in the end.
 */

export function fetch(world: World, writer: Writer, partition: number, size: number): void {
  const from = writer.next[partition] as number;
  const rows = (world.logs[partition] as RowId[]).slice(from, from + size);
  writer.fetches.push({ partition, generation: writer.generation as number, from, rows });
}

export function deliver(world: World, rules: Rules, writer: Writer, place: number): void {
  const [{ partition, generation, from, rows }] = writer.fetches.splice(place, 1) as [Fetch];
  const isStale = generation !== writer.generation;
  // The partition was closed or has moved on meanwhile.
  if (!isStale && (!writer.open.includes(partition) || from !== writer.next[partition])) return;
  const before = writer.last[partition] ?? null;
  const rises = before !== null && before < rules.firstRegrown && rows.some((row) => row >= rules.firstRegrown);
  if (rules.variant.checksLeaderEpoch && rises && world.logs[partition]?.[from - 1] !== before) {
    halt(world, rules.variant, writer, partition);
    return;
  }
  const next = from + rows.length;
  const last = rows.at(-1) ?? null;
  writer.next[partition] = next;
  writer.last[partition] = last;
  writer.batch ??= {
    id: freshId(world, writer.process),
    positions: [],
    rows: [],
    deadLetters: [],
    state: newBatch(contentsOf(rules, [], [])),
    session: null,
    begun: false,
    recorded: false,
  };
  writer.batch.positions.push({ partition, next, last });
  writer.batch.rows.push(...rows);
  if (writer.fetches.length === 0) begin(world, rules, writer);
}

export function begin(world: World, rules: Rules, writer: Writer): void {
  const batch = writer.batch as Batch;
  batch.begun = true;
  batch.state = newBatch(contentsOf(rules, batch.rows, []));
  sendNext(world, rules, writer);
}

/** @param hasResponse whether the writer gets Kafka's response */
export function commit(world: World, rules: Rules, writer: Writer, hasResponse: boolean): void {
  const { positions } = writer.batch as Batch;
  for (const { partition, next } of positions) {
    world.committed[partition] = next;
    if (world.alarmed[partition]) world.broken = `partition ${partition} goes on before an operator resumed it`;
  }
  writer.batch = null;
  if (!hasResponse) writer.fenced = true;
  else if (rules.scenario.cut && !rules.variant.storesPositionFirst) {
    send(world, writer, 'store-positions', 'store-positions', positions);
  }
}
