import type { Epoch } from '../../protocol/epoch.ts';
import { type BatchState, nextStep, type Step, type TakeOverStep } from '../../protocol/steps.ts';
import type { Rules } from './rules.ts';
import { type EventRow, FAULTS } from './scenario.ts';

/*
 * A model of what surrounds the writers' protocol: Kafka, ClickHouse, and writers that are killed, slow or cut off.
 *
 *   Kafka                                writers             ClickHouse
 *   logs of partitions  ────fetches───▶  batches  ─────────▶ sessions with temporary tables
 *   committed offsets   ◀───commits────  epoch    statements events, users seen, properties, deletions, dead deadLetters
 *   group               ────joins─────▶  next offsets ─────▶ newest epoch, positions, halts
 *
 * A world is a plain value: a copy of it can be changed, and two worlds with the same content are the same world.
 *   scenario.ts, scenarios.ts, variant.ts   what a world begins with, and which part of the protocol is changed
 *   kafka-group.ts                          the consumer group
 *   writer.ts, writer-*.ts                  what writers do
 *   clickhouse.ts, clickhouse-*.ts          what ClickHouse does
 *   faults.ts                               what can go wrong
 *   invariants.ts                           what must hold in every world, and in the end
 *   explore.ts, random-schedule.ts          take all actions in all orders, or some of them at random
 *
 * The writers of the model run the functions of `protocol/steps.ts` and `protocol/epoch.ts` themselves.
 *
 * There is no clock. A writer or statement that takes no action is slow, frozen or unreachable, and may go on at any
 * later moment. A statement may begin after its writer has stopped waiting for it.
 */

export type RowId = number;

/** How far a partition is stored, with the last row. */
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
  deadLetters: RowId[];
  state: BatchState;
  session: string | null;
  /** Whether storing has begun: then no more rows are added. */
  begun: boolean;
  recorded: boolean;
}

export type TakeOver = 'newest-epoch' | TakeOverStep;

export interface Writer {
  readonly process: number;
  /** Null before it has joined the group. */
  generation: number | null;
  /** The partitions that the group assigned to it. */
  assigned: readonly number[];
  /** Those of them that it stores: they were inspected, and are not halted. */
  open: readonly number[];
  /** For each partition the next offset, and the row before it if it is known. */
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

/** A statement that was sent to ClickHouse. The writer that sent it may be gone. */
export interface Statement {
  readonly id: string;
  readonly process: number;
  /** The step that is run, and the step of the protocol that it stands for. */
  readonly step: StatementStep;
  readonly nominal: StatementStep;
  readonly batch: string | null;
  readonly session: string | null;
  readonly epoch: Epoch | null;
  readonly generation: number;
  /** The rows and positions that it carries. */
  readonly rows: readonly RowId[];
  readonly positions: readonly Position[];
  phase: 'sent' | 'begun' | 'halfway';
  /** The rows that an insert has yet to write, one month after the other. */
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
  deadLetters: RowId[];
  epoch: Epoch | null;
  /** The stored position of each partition; the operator chose those without a last row. */
  positions: (Position | null)[];
  halted: boolean[];
  /** Whether the operator knows that a partition is halted, and has not resumed it. */
  alarmed: boolean[];
  /** A violation that an action itself has found. */
  broken: string | null;
  /** The operator gave up the rows of partition 0 before this offset. */
  givenUp: number;
  /** How often each fault may still happen. */
  faultsLeft: number[];
}

/** Something that can happen next. */
export interface Action {
  readonly name: string;
  readonly act: (world: World) => void;
  /** The process or the statement that does it, if it may be held up. */
  readonly actor?: string;
}

/** @param unbounded whether faults may happen any number of times, whatever the scenario says */
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
    deadLetters: [],
    epoch: null,
    positions: logs.map(() => null),
    halted: logs.map(() => false),
    alarmed: logs.map(() => false),
    broken: null,
    givenUp: 0,
    faultsLeft: FAULTS.map((fault) => (unbounded ? -1 : (scenario.faults[fault] ?? 0))),
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

/** Returns a copy that actions may change. */
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
    deadLetters: [...world.deadLetters],
    positions: [...world.positions],
    halted: [...world.halted],
    alarmed: [...world.alarmed],
    faultsLeft: [...world.faultsLeft],
  };
}

/** Returns the next step of a batch. */
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
