import { uniformInt } from 'pure-rand/distribution/uniformInt';
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';
import { type Epoch, nextEpoch } from '../epoch.ts';
import {
  afterFailure,
  afterRefusal,
  afterStep,
  type BatchState,
  newBatch,
  nextStep,
  type Step,
  TAKE_OVER_STEPS,
  type TakeOverStep,
} from '../protocol.ts';

/**
 * A model of what surrounds the protocol: Kafka's consumer group, ClickHouse's statements, which begin, read, write and
 * end at moments of their own, and writers that may be killed, cut off or left behind at each of them.
 */

/** What may be left out or changed, to see that the model notices. */
export interface Variant {
  readonly takeOverSteps: readonly TakeOverStep[];
  readonly nextStep: (state: BatchState) => Step;
  /** Whether the insert leaves out what is stored already. */
  readonly looksUp: boolean;
  /** Whether the insert fails when a newer epoch is recorded. */
  readonly fenced: boolean;
  /** Whether a batch whose state is unclear ends what it has running. */
  readonly endsOwn: boolean;
  /** Whether it closes its session, too, so that nothing can begin in it any more. */
  readonly closesSession: boolean;
}

export const PROTOCOL: Variant = {
  takeOverSteps: TAKE_OVER_STEPS,
  nextStep,
  looksUp: true,
  fenced: true,
  endsOwn: true,
  closesSession: true,
};

type Row =
  | { readonly kind: 'event'; readonly key: string; readonly month: number; readonly at: number; readonly user: string }
  | { readonly kind: 'set'; readonly user: string; readonly at: number }
  | { readonly kind: 'deletion'; readonly user: string; readonly at: number }
  | { readonly kind: 'poison'; readonly key: string };

type EventRow = Extract<Row, { kind: 'event' }>;

const WRITERS = 3;

const event = (key: string, month: number, at: number, user = 'u'): Row => ({ kind: 'event', key, month, at, user });

/** Two partitions: repeats of a client's, a batch over several months, poison, a deletion that overtakes, a return. */
const LOGS: readonly (readonly Row[])[] = [
  [
    event('a', 1, 1),
    event('b', 2, 2),
    event('a', 1, 3),
    { kind: 'poison', key: 'p' },
    { kind: 'set', user: 'u', at: 4 },
    event('c', 1, 5),
    event('d', 3, 6),
    event('b', 2, 7),
  ],
  [
    event('v', 1, 1, 'w'),
    { kind: 'set', user: 'w', at: 2 },
    event('x', 2, 3),
    { kind: 'deletion', user: 'w', at: 10 },
    event('y', 1, 4, 'w'),
    event('v', 1, 11, 'w'),
    event('x', 2, 12),
    { kind: 'set', user: 'w', at: 13 },
    event('z', 3, 14),
  ],
];

interface Batch {
  readonly from: readonly number[];
  readonly to: readonly number[];
  rows: readonly Row[];
  letters: readonly string[];
  state: BatchState;
  session: number | undefined;
}

interface Writer {
  readonly process: number;
  generation: number | undefined;
  partitions: readonly number[];
  positions: number[];
  taking: 'look up epoch' | TakeOverStep | 'done';
  epoch: Epoch | undefined;
  superseded: boolean;
  batch: Batch | undefined;
  waitsFor: Statement | undefined;
  stalled: boolean;
}

/** Something that was sent to ClickHouse; whoever sent it may be gone. */
interface Statement {
  readonly step: Step | TakeOverStep | 'look up epoch';
  readonly sender: Writer;
  readonly batch: Batch | undefined;
  readonly epoch: Epoch | undefined;
  readonly session: number | undefined;
  phase: 'sent' | 'begun' | 'halfway';
  /** What an insert has still to write, a month after the other. */
  pending: EventRow[];
  stalled: boolean;
}

type Answer = 'done' | 'refused' | 'failed' | 'superseded';

interface Action {
  readonly name: () => string;
  readonly act: () => void;
}

/** What came of a schedule. */
export interface Outcome {
  /** What was found wrong. */
  readonly fault: string | undefined;
  /** How many processes were killed or held up, answers lost and partitions moved. */
  readonly faults: number;
}

/** How many choices a schedule makes before all is well. */
const CHOICES = 250;

/**
 * Runs the protocol under a schedule that is drawn by chance: one of what could happen next, again and again. After
 * that nothing fails any more, and everything has to be stored in the end.
 *
 * @param seed the same seed gives the same schedule
 * @param trace gets a line for each thing that happens
 */
export function runSchedule(seed: number, variant: Variant = PROTOCOL, trace?: string[]): Outcome {
  const random = xoroshiro128plus(seed);
  const below = (count: number) => uniformInt(random, 0, count - 1);
  const choicesPerFault = 8 << below(4);
  const world = createWorld(variant);
  let faults = 0;

  function takeOne(actions: readonly Action[]): string | undefined {
    const action = actions[below(Math.max(1, actions.length))];
    if (!action) return undefined;
    trace?.push(action.name());
    action.act();
    return world.findFault();
  }

  for (let choice = 0; choice < CHOICES; choice += 1) {
    const wrong = below(choicesPerFault) === 0;
    if (wrong) faults += 1;
    const fault = takeOne(wrong ? world.hazards() : world.steps());
    if (fault) return { fault, faults };
  }
  trace?.push('all is well from here on');
  world.heal();
  for (let turn = 0; !world.finished(); turn += 1) {
    if (turn > 5_000) return { fault: 'it never ends', faults };
    const fault = takeOne(world.steps());
    if (fault) return { fault, faults };
  }
  return { fault: world.findLoss(), faults };
}

function createWorld(variant: Variant) {
  const committed = LOGS.map(() => 0);
  let group = { generation: 0, members: new Map<number, readonly number[]>() };
  const epochs: Epoch[] = [];
  let statements: Statement[] = [];
  const sessions = new Map<number, Row[]>();
  const stored: EventRow[] = [];
  const seen = new Set<string>();
  const deletions = new Map<string, number>();
  const properties = new Map<string, number>();
  const deadLetters = new Set<string>();
  let checked = 0;
  let processes = 0;
  let sessionCount = 0;
  let calm = false;
  let writers = Array.from({ length: WRITERS }, newWriter);

  function newWriter(): Writer {
    processes += 1;
    return {
      process: processes,
      generation: undefined,
      partitions: [],
      positions: [],
      taking: 'look up epoch',
      epoch: undefined,
      superseded: false,
      batch: undefined,
      waitsFor: undefined,
      stalled: false,
    };
  }

  const hidden = ({ user, at }: EventRow) => at <= (deletions.get(user) ?? 0);
  const nameOf = (writer: Writer) => `writer ${writer.process}`;

  // Kafka

  function rebalance(turn: number): void {
    const members = new Map<number, number[]>();
    LOGS.forEach((_, partition) => {
      const writer = writers[(turn + partition * (1 + (turn % 2))) % writers.length] as Writer;
      members.set(writer.process, [...(members.get(writer.process) ?? []), partition]);
    });
    group = { generation: group.generation + 1, members };
  }

  function join(writer: Writer): void {
    writer.generation = group.generation;
    writer.partitions = group.members.get(writer.process) ?? [];
    writer.positions = [...committed];
    writer.taking = 'look up epoch';
    writer.epoch = undefined;
    writer.superseded = false;
    writer.batch = undefined;
    writer.waitsFor = undefined;
  }

  function commit(writer: Writer, { to }: Batch, heard = true): void {
    const current = writer.generation === group.generation;
    for (const partition of writer.partitions) {
      if (current) committed[partition] = to[partition] as number;
      if (heard) writer.positions[partition] = to[partition] as number;
    }
    writer.batch = undefined;
  }

  // Writers

  function fetch(writer: Writer, size: number): void {
    const from = [...writer.positions];
    const to = from.map((position, partition) =>
      writer.partitions.includes(partition) ? Math.min(position + size, LOGS[partition]?.length ?? 0) : position,
    );
    const rows = LOGS.flatMap((log, partition) => log.slice(from[partition], to[partition]));
    writer.batch = { from, to, rows, letters: [], session: undefined, state: newBatch(contentsOf(rows, [])) };
  }

  function send(writer: Writer, step: Statement['step']): void {
    const { batch, epoch } = writer;
    if (batch && (step === 'load events' || step === 'load changes')) {
      sessionCount += batch.session === undefined ? 1 : 0;
      batch.session ??= sessionCount;
    }
    const session = batch?.session;
    const statement: Statement = {
      step,
      sender: writer,
      batch,
      epoch,
      session,
      phase: 'sent',
      pending: [],
      stalled: false,
    };
    statements.push(statement);
    writer.waitsFor = statement;
  }

  function stepsOf(writer: Writer): Action[] {
    const name = nameOf(writer);
    if (writer.generation !== group.generation) return [{ name: () => `${name} joins`, act: () => join(writer) }];
    if (writer.waitsFor) return [];
    if (writer.superseded)
      return [{ name: () => `${name} asks for a new assignment`, act: () => rebalance(writer.process) }];
    if (writer.partitions.length === 0) return [];
    if (writer.taking !== 'done') {
      const { taking } = writer;
      return [{ name: () => `${name}: ${taking}`, act: () => send(writer, taking) }];
    }
    const { batch } = writer;
    if (!batch) {
      const behind = writer.partitions.some(
        (partition) => (writer.positions[partition] ?? 0) < (LOGS[partition]?.length ?? 0),
      );
      return behind
        ? [1, 2, 5].map((size) => ({ name: () => `${name} fetches ${size}`, act: () => fetch(writer, size) }))
        : [];
    }
    const step = variant.nextStep(batch.state);
    if (step === 'commit') return [{ name: () => `${name}: commit`, act: () => commit(writer, batch) }];
    return [{ name: () => `${name}: ${step}`, act: () => send(writer, step) }];
  }

  function hear(statement: Statement, answer: Answer): void {
    const { sender: writer, batch, step } = statement;
    if (writer.waitsFor !== statement) return;
    writer.waitsFor = undefined;
    if (answer === 'superseded') writer.superseded = true;
    if (!batch) {
      writer.taking = answer === 'done' ? followingTakeOver(step) : 'look up epoch';
      return;
    }
    if (answer === 'refused') batch.state = afterRefusal(batch.state);
    else if (answer !== 'done') batch.state = afterFailure(batch.state);
    else {
      if (step === 'isolate bad rows') isolate(batch);
      if (step === 'close session' || step === 'end own statements') batch.session = undefined;
      batch.state = afterStep(batch.state, step as Step);
    }
  }

  function followingTakeOver(step: Statement['step']): Writer['taking'] {
    const steps: readonly Statement['step'][] = ['look up epoch', ...variant.takeOverSteps];
    return (steps[steps.indexOf(step) + 1] as TakeOverStep | undefined) ?? 'done';
  }

  function isolate(batch: Batch): void {
    batch.letters = batch.rows.flatMap((row) => (row.kind === 'poison' ? [row.key] : []));
    batch.rows = batch.rows.filter(({ kind }) => kind !== 'poison');
    batch.session = undefined;
    batch.state = newBatch(contentsOf(batch.rows, batch.letters));
  }

  // ClickHouse

  function end(statement: Statement, answer: Answer): void {
    statements = statements.filter((other) => other !== statement);
    hear(statement, answer);
  }

  function kill(which: (statement: Statement) => boolean): void {
    for (const statement of statements.filter((other) => other.phase !== 'sent' && which(other))) {
      end(statement, 'failed');
    }
  }

  function advance(statement: Statement): void {
    const answer = statement.phase === 'sent' ? begin(statement) : goOn(statement);
    if (answer) end(statement, answer);
  }

  function isLocked(session: number | undefined): boolean {
    return session !== undefined && statements.some((other) => other.phase !== 'sent' && other.session === session);
  }

  function begin(statement: Statement): Answer | undefined {
    const { step, session, epoch } = statement;
    if (step !== 'end own statements' && session !== undefined) {
      const loads = step === 'load events' || step === 'load changes';
      if (isLocked(session) || !(loads || sessions.has(session))) return 'failed';
    }
    if (step === 'store events' && variant.fenced && epochs.some((other) => isNewer(other, epoch as Epoch))) {
      return 'superseded';
    }
    statement.phase = 'begun';
    return undefined;
  }

  function goOn(statement: Statement): Answer | undefined {
    const { step, session, batch, epoch } = statement;
    const rows = sessions.get(session as number) ?? [];
    switch (step) {
      case 'look up epoch':
        return lookUpEpoch(statement);
      case 'record epoch':
        epochs.push(epoch as Epoch);
        break;
      case 'end older statements':
        kill((other) => other.batch !== undefined && !isSame(other.epoch as Epoch, epoch as Epoch));
        break;
      case 'load events':
      case 'load changes':
        if (batch?.rows.some(({ kind }) => kind === 'poison')) return 'refused';
        sessions.set(session as number, [...(batch?.rows ?? [])]);
        break;
      case 'store deletions':
        for (const row of rows) {
          if (row.kind === 'deletion') deletions.set(row.user, Math.max(row.at, deletions.get(row.user) ?? 0));
        }
        break;
      case 'store properties':
        for (const row of rows) {
          if (row.kind !== 'set' || row.at <= (deletions.get(row.user) ?? 0)) continue;
          properties.set(row.user, Math.max(row.at, properties.get(row.user) ?? 0));
        }
        break;
      case 'store seen in events':
        for (const row of rows) if (row.kind === 'event') seen.add(row.key);
        break;
      case 'store events':
        return storeEvents(statement, rows);
      case 'close session':
        sessions.delete(session as number);
        break;
      case 'end own statements':
        return endOwn(statement);
      case 'keep dead letters':
        for (const letter of batch?.letters ?? []) deadLetters.add(letter);
        break;
    }
    return 'done';
  }

  function lookUpEpoch(statement: Statement): Answer {
    const { sender } = statement;
    const newest = epochs.reduce<Epoch | undefined>((a, b) => (!a || isNewer(b, a) ? b : a), undefined);
    const next = nextEpoch(newest, sender.generation ?? 0, group.members.has(sender.process));
    if (next.outcome === 'superseded') return 'superseded';
    if (sender.waitsFor === statement) sender.epoch = next.epoch;
    return 'done';
  }

  /** First what is stored is looked up, then month after month is written. */
  function storeEvents(statement: Statement, rows: readonly Row[]): Answer | undefined {
    if (statement.phase === 'begun') {
      const known = new Set(stored.filter((row) => !hidden(row)).map(({ key }) => key));
      for (const row of rows) {
        if (row.kind !== 'event' || hidden(row) || (variant.looksUp && known.has(row.key))) continue;
        known.add(row.key);
        statement.pending.push(row);
      }
      statement.phase = 'halfway';
      return undefined;
    }
    const month = statement.pending[0]?.month;
    if (month === undefined) return 'done';
    stored.push(...statement.pending.filter((row) => row.month === month));
    statement.pending = statement.pending.filter((row) => row.month !== month);
    return undefined;
  }

  function endOwn(statement: Statement): Answer | undefined {
    const { batch, session } = statement;
    if (statement.phase === 'begun') {
      if (variant.endsOwn) kill((other) => other.batch === batch && other !== statement);
      statement.phase = 'halfway';
      return undefined;
    }
    if (!variant.closesSession || session === undefined) return 'done';
    if (statements.some((other) => other !== statement && other.phase !== 'sent' && other.session === session)) {
      return 'failed';
    }
    sessions.delete(session);
    return 'done';
  }

  // What goes wrong

  function killWriter(index: number): void {
    writers = writers.with(index, newWriter());
  }

  function killClickHouse(): void {
    sessions.clear();
    for (const statement of statements) end(statement, 'failed');
  }

  function loseAnswer(writer: Writer): void {
    if (writer.waitsFor) hear(writer.waitsFor, 'failed');
  }

  function stall(part: Writer | Statement): void {
    part.stalled = true;
  }

  function resume(part: Writer | Statement): void {
    part.stalled = false;
  }

  /** All writers are gone for as long as Kafka remembers a group, a week: no statement lasts that long. */
  function forgetGroup(): void {
    statements = [];
    group = { generation: 0, members: new Map() };
    writers = writers.map(newWriter);
    rebalance(processes);
  }

  const nameOfStatement = ({ step, sender }: Statement) => `${step} of ${nameOf(sender)}`;

  return {
    steps(): Action[] {
      const ofStatements = statements
        .filter(({ stalled }) => !stalled)
        .map((statement) => ({
          name: () => `${nameOfStatement(statement)} goes on, ${statement.phase}`,
          act: () => advance(statement),
        }));
      return [...writers.filter(({ stalled }) => !stalled).flatMap(stepsOf), ...ofStatements];
    },
    hazards(): Action[] {
      const ofWriters = writers.flatMap((writer, index) => {
        const { batch, waitsFor } = writer;
        const actions = [
          { name: () => `${nameOf(writer)} is killed`, act: () => killWriter(index) },
          { name: () => `${nameOf(writer)} is frozen`, act: () => stall(writer) },
        ];
        if (waitsFor) {
          actions.push({
            name: () => `${nameOf(writer)} does not hear of ${waitsFor.step}`,
            act: () => loseAnswer(writer),
          });
        } else if (batch && variant.nextStep(batch.state) === 'commit') {
          actions.push({
            name: () => `${nameOf(writer)} does not hear of its commit`,
            act: () => commit(writer, batch, false),
          });
        }
        return actions;
      });
      // Inserts are held up more often than the rest, and for no longer: what they overlap with is what matters.
      const ofStatements = statements.flatMap((statement) =>
        Array<Action>(statement.step === 'store events' ? 8 : 1).fill({
          name: () => `${nameOfStatement(statement)} is held up, ${statement.phase}`,
          act: () => stall(statement),
        }),
      );
      const resumed = [...writers, ...statements]
        .filter(({ stalled }) => stalled)
        .flatMap((part) =>
          Array<Action>(8).fill({
            name: () => `${'step' in part ? nameOfStatement(part) : nameOf(part)} is no longer held up`,
            act: () => resume(part),
          }),
        );
      const moves = [0, 1, 2, 3].map((turn) => ({
        name: () => `partitions move (${turn})`,
        act: () => rebalance(turn),
      }));
      return [
        ...ofWriters,
        ...ofStatements,
        ...resumed,
        ...moves,
        { name: () => 'ClickHouse is killed', act: killClickHouse },
        { name: () => 'all writers are gone, and the group is forgotten', act: forgetGroup },
      ];
    },
    heal() {
      calm = true;
      [...writers, ...statements].forEach(resume);
      rebalance(0);
    },
    finished(): boolean {
      return (
        calm && statements.length === 0 && committed.every((offset, partition) => offset === LOGS[partition]?.length)
      );
    },
    /** What must never be seen, not even for a moment. */
    findFault(): string | undefined {
      if (checked === stored.length) return undefined;
      checked = stored.length;
      const visible = stored.filter((row) => !hidden(row));
      const keys = new Set<string>();
      for (const { key } of visible) {
        if (keys.has(key)) return `${key} is stored twice`;
        keys.add(key);
        if (!seen.has(key)) return `${key} is stored before its user is seen`;
      }
      return undefined;
    },
    /** What must be there in the end. */
    findLoss(): string | undefined {
      const rows = LOGS.flat();
      const visible = new Set(stored.filter((row) => !hidden(row)).map(({ key }) => key));
      for (const row of rows) {
        if (row.kind === 'event' && !hidden(row) && !visible.has(row.key)) return `${row.key} is lost`;
        if (row.kind === 'poison' && !deadLetters.has(row.key)) return `${row.key} is not kept`;
        if (row.kind === 'deletion' && deletions.get(row.user) !== row.at) return `a deletion is lost`;
      }
      if (properties.get('u') !== 4 || properties.get('w') !== 13) return 'a property is lost';
      return undefined;
    },
  };
}

function contentsOf(rows: readonly Row[], letters: readonly string[]) {
  return {
    hasEvents: rows.some(({ kind }) => kind === 'event' || kind === 'poison'),
    hasChanges: rows.some(({ kind }) => kind === 'set' || kind === 'deletion'),
    hasDeadLetters: letters.length > 0,
  };
}

function isSame(a: Epoch, b: Epoch): boolean {
  return a.incarnation === b.incarnation && a.generation === b.generation;
}

function isNewer(a: Epoch, b: Epoch): boolean {
  return a.incarnation > b.incarnation || (a.incarnation === b.incarnation && a.generation > b.generation);
}
