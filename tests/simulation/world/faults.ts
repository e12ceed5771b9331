import type { Network, Request } from './network.ts';
import type { Random } from './random.ts';
import type { VirtualTime } from './virtual-time.ts';
import type { Trigger } from './watches.ts';

/** What a fault happens to, and how: numbers in [0, 1). */
export interface Choice {
  readonly target: number;
  readonly manner: number;
}

/** Something that goes wrong at a moment of a schedule, and for how long. */
export interface Fault extends Choice {
  readonly atMs: number;
  /** Its name in a {@link FaultTable}. */
  readonly kind: string;
  readonly forMs: number;
  /** If given, it waits from `atMs` on for such a moment. */
  readonly trigger?: Trigger | undefined;
  /** How long after that moment it happens, in milliseconds. */
  readonly afterMs?: number;
  /** If given, it ends with such a moment, if that comes before `forMs` have passed. */
  readonly until?: Trigger | undefined;
}

/** Begins a fault, with the request that has triggered it, if any. Returns what ends it. */
export type Begin<World> = (
  world: World,
  choice: Choice,
  request?: Request,
) => { readonly name: string; readonly end?: () => void };

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

interface FaultyWorld {
  readonly time: VirtualTime;
  readonly network: Network;
  note(line: string): void;
}

/** Has a fault happen at its time, or with the request that it waits for, until there are no more faults. */
export function scheduleFault<World extends FaultyWorld>(world: World, table: FaultTable<World>, fault: Fault): void {
  const { time, network } = world;
  const { trigger, afterMs = 0 } = fault;
  time.after(fault.atMs, () => {
    if (!trigger) begin(world, table, fault);
    else {
      network.watches.next(trigger, (request) => {
        if (afterMs === 0) begin(world, table, fault, request);
        else time.after(afterMs, () => begin(world, table, fault, request));
      });
    }
  });
}

function begin<World extends FaultyWorld>(
  world: World,
  table: FaultTable<World>,
  fault: Fault,
  request?: Request,
): void {
  const { time, network } = world;
  if (network.isMended) return;
  const { kind, forMs, trigger, until } = fault;
  const found = table[kind];
  if (!found) throw new Error(`there is no fault "${kind}"`);
  const { name, end } = found.begin(world, fault, request);
  const when = trigger && request ? ` (${trigger.what} of ${request.process?.name} is ${trigger.moment})` : '';
  const ending = until ? ` for ${forMs} ms, or until ${until.what} is ${until.moment}` : ` for ${forMs} ms`;
  world.note(`FAULT: ${name}${end ? ending : ''}${when}`);
  if (!end) return;
  let isOver = false;
  const finish = () => {
    if (isOver) return;
    isOver = true;
    end();
    world.note(`over: ${name}`);
  };
  time.after(forMs, finish);
  if (until) network.watches.next(until, () => time.after(0, finish));
}

/** Returns what a fault happens to. */
export function chosen<Item>(items: readonly Item[], { target }: Choice): Item {
  return items[Math.floor(target * items.length)] as Item;
}
