import type { LinkFault, Network, Request } from './network.ts';
import type { Random } from './random.ts';
import type { VirtualTime } from './virtual-time.ts';
import type { Moment, Trigger } from './watches.ts';

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

/** The names of the faults that happen to the requests which trigger them. */
export const HOLDING = 'hold request';
export const STALLING = 'stall statement';

/** What a kind of fault always waits for. */
export interface OwnTrigger {
  readonly moment: Moment;
  /** Default: what other faults wait for as well. */
  readonly requests?: readonly string[];
  /** What it ends with, at any moment. Default: as for other faults. */
  readonly until?: readonly string[];
}

const OWN_TRIGGERS: Readonly<Record<string, OwnTrigger>> = {
  [HOLDING]: { moment: 'sent' },
  [STALLING]: { moment: 'arrived' },
};

const MOMENTS: readonly Moment[] = ['sent', 'arrived', 'served'];

/** Chooses the kinds of faults of a schedule: few, so that many of a kind come together. @returns 1 to `most` of them */
export function chooseKinds<World>(random: Random, table: FaultTable<World>, most: number): string[] {
  const pool = weighted(Object.entries(table).map(([kind, { weight }]) => [kind, weight]));
  return Array.from({ length: 1 + random.below(most) }, () => random.pick(pool));
}

export interface FaultChoice {
  readonly kinds: readonly string[];
  /** What processes ask for, each with how often faults wait for it, compared with others. */
  readonly requests: Readonly<Record<string, number>>;
  /** What some kinds wait for, by their names. */
  readonly own?: Readonly<Record<string, OwnTrigger>>;
  readonly count: number;
  readonly untilMs: number;
}

/** Chooses the faults of a schedule, in the order in which they may begin. */
export function chooseFaults(random: Random, { kinds, requests, own, count, untilMs }: FaultChoice): Fault[] {
  const triggers = weighted(Object.entries(requests));
  const faults = Array.from({ length: count }, () => {
    const kind = random.pick(kinds);
    return chooseFault(random, kind, { triggers, own: own?.[kind] ?? OWN_TRIGGERS[kind], untilMs });
  });
  return faults.sort((one, other) => one.atMs - other.atMs);
}

function chooseFault(
  random: Random,
  kind: string,
  { triggers, own, untilMs }: { triggers: readonly string[]; own: OwnTrigger | undefined; untilMs: number },
): Fault {
  const isTriggered = own !== undefined || random.isTrue(0.6);
  const what = random.pick(own?.requests ?? triggers);
  const ends = own?.until !== undefined || random.isTrue(0.5);
  return {
    atMs: Math.floor(random.between(0, untilMs)),
    kind,
    // Short ones are the rule: they are over while what they have hit still goes on.
    forMs: Math.floor(10 ** random.between(1, 3.8)),
    target: random.next(),
    manner: random.next(),
    trigger: isTriggered ? { what, moment: own?.moment ?? random.pick(MOMENTS) } : undefined,
    afterMs: own !== undefined || random.isTrue(0.5) ? 0 : Math.floor(random.between(0, 30)),
    until: ends ? { what: random.pick(own?.until ?? triggers), moment: random.pick(MOMENTS) } : undefined,
  };
}

function weighted(weights: readonly (readonly [name: string, weight: number])[]): string[] {
  return weights.flatMap(([name, weight]) => Array<string>(weight).fill(name));
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

const LINK_FAULTS: readonly LinkFault[] = ['down', 'silent', 'cut', 'cut', 'slow'];

/** Breaks the connection of a process to a server in some way. */
export function breakLink(network: Network, process: string, server: string, { manner }: Choice) {
  const how = LINK_FAULTS[Math.floor(manner * LINK_FAULTS.length)] as LinkFault;
  network.set(process, server, how);
  const end = () => network.set(process, server, undefined);
  return { name: `the connection of ${process} to ${server} is ${how}`, end };
}

/** The request that triggers it is lost, or under way for long. Its client waits, or finds its connection broken. */
export function holdRequest({ network }: { readonly network: Network }, { manner }: Choice, request?: Request) {
  if (!request) return { name: 'nothing is held' };
  const [isLost, breaks] = [manner < 0.25, manner < 0.6];
  network.hold(request, breaks);
  const what = `${request.what} of ${request.process?.name}`;
  if (isLost) {
    network.lose(request);
    return { name: `${what} is lost, its connection broken` };
  }
  return { name: `${what} is held${breaks ? ', its connection broken' : ''}`, end: () => network.release(request) };
}
