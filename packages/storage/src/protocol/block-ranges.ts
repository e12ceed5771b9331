/** The first and the last of some numbers of blocks. */
type Range = readonly [first: number, last: number];

/** Numbers of blocks by the partition of the table, which counts its own: ranges in their order, of which no two touch. */
export type BlockRanges = ReadonlyMap<number, readonly Range[]>;

/** A range of a partition, as statements return and take it. */
export type BlockRange = readonly [partition: number, first: number, last: number];

export const NO_BLOCKS: BlockRanges = new Map();

/** Returns the numbers of some ranges, in any order. */
export function blocksOf(ranges: Iterable<BlockRange>): BlockRanges {
  const byPartition = new Map<number, Range[]>();
  for (const [partition, first, last] of ranges) {
    const own = byPartition.get(partition) ?? [];
    own.push([first, last]);
    byPartition.set(partition, own);
  }
  return new Map([...byPartition].map(([partition, own]) => [partition, joined(own)]));
}

/** Returns the ranges, one behind the other. */
export function rangesOf(blocks: BlockRanges): BlockRange[] {
  return [...blocks].flatMap(([partition, ranges]) =>
    ranges.map(([first, last]): BlockRange => [partition, first, last]),
  );
}

/** Returns the numbers that at least so many of some sets have. */
export function inAtLeast(count: number, sets: readonly BlockRanges[]): BlockRanges {
  const found = new Map<number, readonly Range[]>();
  for (const partition of new Set(sets.flatMap((blocks) => [...blocks.keys()]))) {
    const all = sets.flatMap((blocks) => blocks.get(partition) ?? []);
    const changes = all.flatMap(([first, last]) => [[first, 1] as const, [last + 1, -1] as const]);
    changes.sort(([one, change], [other, otherChange]) => one - other || otherChange - change);
    const ranges: Range[] = [];
    let depth = 0;
    let from: number | undefined;
    for (const [at, change] of changes) {
      depth += change;
      if (depth >= count) from ??= at;
      else if (from !== undefined) {
        if (from < at) ranges.push([from, at - 1]);
        from = undefined;
      }
    }
    if (ranges.length > 0) found.set(partition, joined(ranges));
  }
  return found;
}

export function union(...sets: readonly BlockRanges[]): BlockRanges {
  return inAtLeast(1, sets);
}

/** Returns the numbers that both sets have. */
export function inBoth(one: BlockRanges, other: BlockRanges): BlockRanges {
  return inAtLeast(2, [one, other]);
}

/** Returns all numbers of each partition up to the highest one. */
export function upToHighest(blocks: BlockRanges): BlockRanges {
  return new Map(
    [...blocks].map(([partition, ranges]): [number, Range[]] => [partition, [[0, ranges.at(-1)?.[1] ?? 0]]]),
  );
}

/** Returns the numbers of the first set that the second one does not have. */
export function without(one: BlockRanges, other: BlockRanges): BlockRanges {
  const left = new Map<number, readonly Range[]>();
  for (const [partition, ranges] of one) {
    const taken = other.get(partition) ?? [];
    const own = ranges.flatMap((range) => cutOut(range, taken));
    if (own.length > 0) left.set(partition, own);
  }
  return left;
}

function cutOut([first, last]: Range, taken: readonly Range[]): Range[] {
  const left: Range[] = [];
  let from = first;
  for (const [begin, end] of taken) {
    if (end < from) continue;
    if (begin > last) break;
    if (begin > from) left.push([from, begin - 1]);
    from = end + 1;
  }
  if (from <= last) left.push([from, last]);
  return left;
}

function joined(ranges: readonly Range[]): Range[] {
  const all: [number, number][] = [];
  for (const [first, last] of [...ranges].sort(([one], [other]) => one - other)) {
    const before = all.at(-1);
    if (before && first <= before[1] + 1) before[1] = Math.max(before[1], last);
    else all.push([first, last]);
  }
  return all;
}
