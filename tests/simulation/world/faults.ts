import type { Random } from './random.ts';
import type { VirtualTime } from './virtual-time.ts';

/** Something that goes wrong at a moment of a schedule, and for how long. */
export interface Fault {
  readonly atMs: number;
  /** Its name in a {@link FaultTable}. */
  readonly kind: string;
  readonly forMs: number;
  /** Chooses what it happens to; a number in [0, 1). */
  readonly target: number;
  /** Chooses how; a number in [0, 1). */
  readonly manner: number;
}

/** Begins a fault, and returns what ends it. */
export type Begin<World> = (world: World, fault: Fault) => { readonly name: string; readonly end?: () => void };

/** The faults of a world by their names, each with how often it happens compared with others. */
export type FaultTable<World> = Readonly<Record<string, { readonly weight: number; readonly begin: Begin<World> }>>;

export interface FaultChoice {
  readonly count: number;
  readonly untilMs: number;
  /** Every tenth fault is one of this kind. */
  readonly favourite?: string | undefined;
}

/** Chooses the faults of a schedule, in the order in which they begin. */
export function chooseFaults<World>(
  random: Random,
  table: FaultTable<World>,
  { count, untilMs, favourite }: FaultChoice,
): Fault[] {
  const kinds = Object.entries(table).flatMap(([kind, { weight }]) => Array<string>(weight).fill(kind));
  const faults = Array.from({ length: count }, () => ({
    atMs: Math.floor(random.between(0, untilMs)),
    kind: favourite !== undefined && random.isTrue(0.1) ? favourite : random.pick(kinds),
    // Short ones are the rule: they are over while what they have hit still goes on.
    forMs: Math.floor(10 ** random.between(1, 4)),
    target: random.next(),
    manner: random.next(),
  }));
  return faults.sort((one, other) => one.atMs - other.atMs);
}

export function beginFault<World extends { readonly time: VirtualTime; note(line: string): void }>(
  world: World,
  table: FaultTable<World>,
  fault: Fault,
): void {
  const kind = table[fault.kind];
  if (!kind) throw new Error(`there is no fault "${fault.kind}"`);
  const { name, end } = kind.begin(world, fault);
  world.note(`FAULT: ${name}${end ? ` for ${fault.forMs} ms` : ''}`);
  if (!end) return;
  world.time.after(fault.forMs, () => {
    end();
    world.note(`over: ${name}`);
  });
}

/** Returns what a fault happens to. */
export function chosen<Item>(items: readonly Item[], { target }: Fault): Item {
  return items[Math.floor(target * items.length)] as Item;
}
