import type { Rules } from './rules.ts';
import type { Variant } from './variant.ts';
import type { RowId, World, Writer } from './world.ts';

/*
 * What a writer does with its partitions: it opens those whose log continues what was stored, and halts the others. An
 * operator resumes them.
 */

export function openAll(world: World, rules: Rules, writer: Writer): void {
  writer.taking = 'done';
  for (const partition of writer.assigned) open(world, rules, writer, partition);
}

/**
 * Compares the committed offset and the stored position with the log. Goes on at the lower of the two, or where the
 * operator chose, and reads the row before from the log, by which a later cut is noticed.
 */
export function open(world: World, { variant }: Rules, writer: Writer, partition: number): void {
  if (world.halted[partition]) return;
  const log = world.logs[partition] as RowId[];
  const committed = world.committed[partition] as number;
  const position = world.positions[partition] ?? { next: committed, last: null };
  const isChosen = world.positions[partition] !== null && position.last === null;
  const next = isChosen ? position.next : Math.min(committed, position.next);
  const furthest = isChosen ? position.next : Math.max(committed, position.next);
  const differs = position.last !== null && log[position.next - 1] !== position.last;
  writer.next[partition] = next;
  writer.last[partition] = variant.readsRowBefore || next === position.next ? (log[next - 1] ?? null) : null;
  writer.open = [...writer.open, partition].sort();
  if (furthest > log.length || (variant.checksFingerprint && differs)) halt(world, variant, writer, partition);
  else world.committed[partition] = next;
}

export function halt(world: World, variant: Variant, writer: Writer, partition: number): void {
  world.alarmed[partition] = true;
  if (variant.recordsHalt) world.halted[partition] = true;
  writer.open = writer.open.filter((other) => other !== partition);
  if (!variant.haltsAlone) {
    writer.open = [];
    writer.assigned = [];
  }
}

/** An operator resumes a partition at this offset, and gives up the rows before it that are not stored. */
export function resume(world: World, partition: number, next: number): void {
  world.alarmed[partition] = false;
  world.halted[partition] = false;
  world.positions[partition] = { partition, next, last: null };
  if (partition === 0) world.givenUp = next;
}
