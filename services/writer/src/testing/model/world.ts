import type { Epoch } from '../../ownership/epoch.ts';
import { type BatchState, nextStep, type Step, type TakeOverStep } from '../../protocol.ts';
import { type EventRow, HAZARDS, type Rules } from './rules.ts';

/*
 * A model of what surrounds the writers' protocol: Kafka, ClickHouse, and writers that are killed, slow or cut off.
 *
 *   Kafka                                writers             ClickHouse
 *   logs of partitions  ────fetches───▶  batches  ─────────▶ sessions with temporary tables
 *   committed offsets   ◀───commits────  epoch    statements events, users seen, properties, deletions, dead letters
 *   group               ────joins─────▶  next offsets ─────▶ newest epoch, positions, halts
 *
 * A world is a plain value: a copy of it can be changed, and two worlds with the same content are the same world.
 * `writer.ts`, `clickhouse.ts` and `hazards.ts` list the actions that are possible in a world, `faults.ts` says what is
 * wrong with it. `explore.ts` takes all actions in all orders, `random.ts` takes some of them. The batches themselves
 * follow the functions of `protocol.ts` and `epoch.ts` that the writer runs.
 *
 * There is no clock. A writer or statement that takes no action is slow, frozen or unreachable, and may go on at any
 * later moment. A statement may begin after its writer has stopped waiting for it.
 */

export type RowId = number;

/** Up to where a partition is stored, with the last row. */
export interface Position {
  readonly partition: number;
  readonly next: number;
  readonly last: RowId | null;
}

export interface Fetch {
  readonly partition: number;
  readonly generation: number;
  readonly from: number;
  readonly rows: readonly RowId[];
}

export interface Batch {
  readonly id: string;
  positions: Position[];
  rows: RowId[];
  letters: RowId[];
  state: BatchState;
  session: string | null;
  /** Whether something was done for it: then it takes in nothing more. */
  begun: boolean;
  recorded: boolean;
}

export type TakeOver = 'newest-epoch' | TakeOverStep;

export interface Writer {
  readonly process: number;
  /** Null before it has joined the group. */
  generation: number | null;
  /** What the group gave to it. */
  assigned: readonly number[];
  /** Those of them that it stores: they are looked at, and not halted. */
  open: readonly number[];
  /** For each partition the next offset, and the row before it where that is known. */
  next: number[];
  last: (RowId | null)[];
  taking: TakeOver | 'open partitions' | 'done';
  epoch: Epoch | null;
  fenced: boolean;
  fetches: Fetch[];
  batch: Batch | null;
  waitsFor: string | null;
}

export type StatementStep = Step | TakeOver | 'store-positions';

/** Something that was sent to ClickHouse; whoever sent it may be gone. */
export interface Statement {
  readonly id: string;
  readonly process: number;
  /** What is done, and what the protocol called for. */
  readonly step: StatementStep;
  readonly nominal: StatementStep;
  readonly batch: string | null;
  readonly session: string | null;
  readonly epoch: Epoch | null;
  readonly generation: number;
  /** What it carries. */
  readonly rows: readonly RowId[];
  readonly positions: readonly Position[];
  phase: 'sent' | 'begun' | 'halfway';
  /** What an insert has still to write, a month after the other. */
  pending: RowId[];
}

export interface World {
  logs: RowId[][];
  cut: 'not yet' | 'short' | 'grown';
  committed: number[];
  group: { generation: number; members: number[]; owners: readonly number[] };
  writers: Writer[];
  statements: Statement[];
  /** Temporary tables, by session. */
  staged: { session: string; rows: RowId[]; repeats: RowId[] }[];
  stored: RowId[];
  /** The last time at which each user was seen, -1 for never. */
  seen: number[];
  deletions: number[];
  erased: number[];
  properties: number[];
  letters: RowId[];
  epoch: Epoch | null;
  /** Where storing goes on, with the row before; without one the operator chose the offset. */
  positions: (Position | null)[];
  halted: boolean[];
  /** Whether the operator was told that a partition is halted, and has not resumed it. */
  alarmed: boolean[];
  /** What was found wrong when it was done. */
  broken: string | null;
  /** The rows of partition 0 that an operator gave up: those before this offset. */
  givenUp: number;
  /** How often each hazard may still happen. */
  left: number[];
}

/** One of the things that can happen next. */
export interface Action {
  readonly name: string;
  readonly act: (world: World) => void;
  /** Who does it, where it may be held up: a process or a statement. */
  readonly actor?: string;
}

/** @param unbounded whether hazards may happen any number of times, whatever the scenario says */
export function createWorld(rules: Rules, unbounded = false): World {
  const { scenario, users } = rules;
  const { logs, writers, assignments, upgraded = 0 } = scenario;
  const stored = Array.from({ length: upgraded }, (_, id) => id);
  const ofUsers = users.map(() => -1);
  let rowCount = 0;
  const processes = Array.from({ length: writers }, (_, index) => index);
  return {
    logs: logs.map((rows) => rows.map(() => rowCount++)),
    cut: 'not yet',
    committed: logs.map((_, partition) => (partition === 0 ? upgraded : 0)),
    group: { generation: 1, members: processes, owners: assignments[0] ?? [] },
    writers: processes.map((process) => newWriter(process, logs.length)),
    statements: [],
    staged: [],
    stored,
    seen: users.map((user) =>
      Math.max(
        -1,
        ...eventsOf(rules, stored)
          .filter(({ row }) => row.user === user)
          .map(({ row }) => row.time),
      ),
    ),
    deletions: [...ofUsers],
    erased: [...ofUsers],
    properties: [...ofUsers],
    letters: [],
    epoch: null,
    positions: logs.map(() => null),
    halted: logs.map(() => false),
    alarmed: logs.map(() => false),
    broken: null,
    givenUp: 0,
    left: HAZARDS.map((hazard) => (unbounded ? -1 : (scenario.hazards[hazard] ?? 0))),
  };
}

export function newWriter(process: number, partitions: number): Writer {
  return {
    process,
    generation: null,
    assigned: [],
    open: [],
    next: Array.from({ length: partitions }, () => 0),
    last: Array.from({ length: partitions }, () => null),
    taking: 'newest-epoch',
    epoch: null,
    fenced: false,
    fetches: [],
    batch: null,
    waitsFor: null,
  };
}

/** A copy that actions may change. */
export function copyOf(world: World): World {
  return {
    ...world,
    logs: world.logs.map((log) => [...log]),
    committed: [...world.committed],
    group: { ...world.group },
    writers: world.writers.map((writer) => ({
      ...writer,
      next: [...writer.next],
      last: [...writer.last],
      fetches: [...writer.fetches],
      batch: writer.batch && {
        ...writer.batch,
        positions: [...writer.batch.positions],
        rows: [...writer.batch.rows],
      },
    })),
    statements: world.statements.map((statement) => ({ ...statement, pending: [...statement.pending] })),
    staged: world.staged.map(({ session, rows, repeats }) => ({ session, rows: [...rows], repeats: [...repeats] })),
    stored: [...world.stored],
    seen: [...world.seen],
    deletions: [...world.deletions],
    erased: [...world.erased],
    properties: [...world.properties],
    letters: [...world.letters],
    positions: [...world.positions],
    halted: [...world.halted],
    alarmed: [...world.alarmed],
    left: [...world.left],
  };
}

/** What a batch does next. */
export function stepOf({ variant }: Rules, { state }: Batch): Step {
  return variant.performs(nextStep(state), state);
}

export function isHidden(world: World, { users }: Rules, { user, at }: EventRow): boolean {
  return at <= (world.deletions[users.indexOf(user)] ?? -1);
}

export function eventsOf({ rows }: Rules, ids: readonly RowId[]): { id: RowId; row: EventRow }[] {
  return ids.flatMap((id) => {
    const row = rows[id];
    return row?.kind === 'event' ? [{ id, row }] : [];
  });
}

export function isNewer(a: Epoch, b: Epoch): boolean {
  return a.incarnation > b.incarnation || (a.incarnation === b.incarnation && a.generation > b.generation);
}

/** The smallest name that nothing of the process bears now, so that worlds with different pasts can be equal. */
export function freshId(world: World, process: number): string {
  const taken = new Set<string | null>();
  for (const { id, batch, session } of world.statements) taken.add(id).add(batch).add(session);
  for (const { session } of world.staged) taken.add(session);
  for (const { batch } of world.writers) if (batch) taken.add(batch.id).add(batch.session);
  let count = 0;
  while (taken.has(`${process}.${count}`)) count += 1;
  return `${process}.${count}`;
}

/** What only its own batch would notice: when that was given up, it does not matter when such a statement runs. */
const OF_A_BATCH = new Set<StatementStep>([
  'load-events',
  'load-changes',
  'find-repeats',
  'close-session',
  'end-own-statements',
]);

/** Leaves out what nobody can notice any more. */
export function tidy(world: World): void {
  const inUse = new Set<string | null>();
  for (const { batch, waitsFor } of world.writers) {
    inUse.add(waitsFor);
    if (batch) inUse.add(batch.id).add(batch.session);
  }
  const lasting = world.statements.filter(({ step }) => step !== 'newest-epoch' && !OF_A_BATCH.has(step));
  for (const { batch, session } of lasting) inUse.add(batch).add(session);
  world.statements = world.statements.filter(
    (statement) =>
      lasting.includes(statement) || inUse.has(statement.id) || (statement.batch && inUse.has(statement.batch)),
  );
  world.staged = world.staged.filter(({ session }) => inUse.has(session));
}

/** The world as text, the same for worlds that do not differ in anything that matters. */
export function keyOf(world: World): string {
  world.staged.sort((a, b) => (a.session < b.session ? -1 : 1));
  world.statements.sort((a, b) => (a.id < b.id ? -1 : 1));
  world.stored.sort((a, b) => a - b);
  return JSON.stringify(world);
}
