import {
  afterFailure,
  afterRefusal,
  afterStep,
  type BatchContents,
  newBatch,
  nextStep,
  type Step,
} from '../../protocol.ts';
import type { Rules, Variant } from './rules.ts';
import {
  type Action,
  type Batch,
  type Fetch,
  freshId,
  type RowId,
  type Statement,
  type StatementStep,
  stepOf,
  type World,
  type Writer,
} from './world.ts';

/*
 * What writers do: join the group, take over, fetch, have their batches stored statement by statement, commit, halt.
 * A writer that hears of one statement sends the next at once: being slow to send is like a statement's slow start.
 */

export type Answer = 'done' | 'refused' | 'failed' | 'fenced';

/** What the writers can do now. */
export function writerActions(world: World, rules: Rules): Action[] {
  return world.writers.flatMap((writer, index) => {
    const actor = `writer ${writer.process}`;
    return actionsOf(world, rules, writer, index).map(({ name, act }) => ({ name: `${actor} ${name}`, act, actor }));
  });
}

/** Writers are found anew in the world that an action is applied to. */
function actionsOf(world: World, rules: Rules, writer: Writer, index: number): Action[] {
  const { group, logs } = world;
  const self = (other: World) => other.writers[index] as Writer;
  if (writer.generation !== group.generation) {
    return group.members[index] === writer.process
      ? [{ name: 'joins', act: (other) => join(other, rules, self(other)) }]
      : [{ name: 'asks to be a member', act: (other) => admit(other, index) }];
  }
  if (writer.waitsFor !== null) return [];
  if (writer.fenced) return [{ name: 'asks to join anew', act: (other) => rebalance(other, group.owners) }];
  if (writer.taking === 'open partitions') {
    return [{ name: 'opens its partitions', act: (other) => openAll(other, rules, self(other)) }];
  }
  if (writer.taking !== 'done') return [];
  const { batch, fetches } = writer;
  if (batch?.begun) {
    return [{ name: 'commits', act: (other) => commit(other, rules, self(other), true) }];
  }
  const actions: Action[] = [];
  if (batch) actions.push({ name: 'begins to store', act: (other) => begin(other, rules, self(other)) });
  for (const [place, { partition, rows }] of fetches.entries()) {
    const name = `gets rows ${rows} of partition ${partition}`;
    actions.push({ name, act: (other) => deliver(other, rules, self(other), place) });
  }
  for (const partition of writer.open) {
    const next = writer.next[partition] ?? 0;
    const end = logs[partition]?.length ?? 0;
    if (next > end && !batch) {
      actions.push({ name: `halts ${partition}`, act: (other) => halt(other, rules.variant, self(other), partition) });
    }
    if (fetches.some((fetch) => fetch.partition === partition && fetch.generation === writer.generation)) continue;
    if (batch?.positions.some((position) => position.partition === partition)) continue;
    for (const size of new Set(rules.scenario.fetchSizes.map((size) => Math.min(size, end - next)))) {
      if (size <= 0) continue;
      const name = `fetches ${size} of partition ${partition}`;
      actions.push({ name, act: (other) => fetch(other, self(other), partition, size) });
    }
  }
  for (const partition of writer.assigned) {
    if (writer.open.includes(partition) || world.alarmed[partition]) continue;
    actions.push({ name: `opens ${partition} again`, act: (other) => open(other, rules, self(other), partition) });
  }
  return actions;
}

// The group

export function rebalance(world: World, owners: readonly number[]): void {
  world.group = { ...world.group, generation: world.group.generation + 1, owners };
}

function admit(world: World, index: number): void {
  const { group, writers } = world;
  group.members = group.members.with(index, (writers[index] as Writer).process);
  rebalance(world, group.owners);
}

function join(world: World, rules: Rules, writer: Writer): void {
  const { generation, members, owners } = world.group;
  writer.generation = generation;
  writer.assigned = owners.flatMap((owner, partition) => (members[owner] === writer.process ? [partition] : []));
  writer.open = [];
  writer.taking = 'newest-epoch';
  writer.epoch = null;
  writer.fenced = false;
  writer.batch = null;
  writer.waitsFor = null;
  // Answers that are on their way still come, but their rows are left alone: they are forgotten at once here.
  if (rules.variant.dropsStaleFetches) writer.fetches = [];
  drive(world, rules, writer);
}

// Partitions are opened, halted and resumed

function openAll(world: World, rules: Rules, writer: Writer): void {
  writer.taking = 'done';
  for (const partition of writer.assigned) open(world, rules, writer, partition);
}

/**
 * Compares what is committed and stored with the log, and goes on at the lower of the two, or where the operator chose.
 * The row before is read from the log that was found sound: it tells whether that log is cut off later on.
 */
function open(world: World, { variant }: Rules, writer: Writer, partition: number): void {
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

function halt(world: World, variant: Variant, writer: Writer, partition: number): void {
  world.alarmed[partition] = true;
  if (variant.recordsHalt) world.halted[partition] = true;
  writer.open = writer.open.filter((other) => other !== partition);
  if (!variant.haltsAlone) {
    writer.open = [];
    writer.assigned = [];
  }
}

/** An operator has the partition stored from this offset on, and gives up what is before it and not stored. */
export function resume(world: World, partition: number, next: number): void {
  world.alarmed[partition] = false;
  world.halted[partition] = false;
  world.positions[partition] = { partition, next, last: null };
  if (partition === 0) world.givenUp = next;
}

// Batches

function fetch(world: World, writer: Writer, partition: number, size: number): void {
  const from = writer.next[partition] as number;
  const rows = (world.logs[partition] as RowId[]).slice(from, from + size);
  writer.fetches.push({ partition, generation: writer.generation as number, from, rows });
}

function deliver(world: World, rules: Rules, writer: Writer, place: number): void {
  const [{ partition, generation, from, rows }] = writer.fetches.splice(place, 1) as [Fetch];
  const isStale = generation !== writer.generation;
  // Something else came next meanwhile.
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
    letters: [],
    state: newBatch(contentsOf(rules, [], [])),
    session: null,
    begun: false,
    recorded: false,
  };
  writer.batch.positions.push({ partition, next, last });
  writer.batch.rows.push(...rows);
  if (writer.fetches.length === 0) begin(world, rules, writer);
}

function begin(world: World, rules: Rules, writer: Writer): void {
  const batch = writer.batch as Batch;
  batch.begun = true;
  batch.state = newBatch(contentsOf(rules, batch.rows, []));
  drive(world, rules, writer);
}

/** @param heard whether Kafka's answer comes */
export function commit(world: World, rules: Rules, writer: Writer, heard: boolean): void {
  const { positions } = writer.batch as Batch;
  for (const { partition, next } of positions) {
    world.committed[partition] = next;
    if (world.alarmed[partition]) world.broken = `partition ${partition} goes on before an operator resumed it`;
  }
  writer.batch = null;
  if (!heard) writer.fenced = true;
  else if (rules.scenario.cut && !rules.variant.recordsFirst) {
    send(world, writer, 'store-positions', 'store-positions', positions);
  }
}

/** Sends what is next, if that is a statement. */
export function drive(world: World, rules: Rules, writer: Writer): void {
  if (writer.waitsFor !== null || writer.fenced || writer.taking === 'open partitions') return;
  if (writer.taking !== 'done') {
    if (writer.assigned.length > 0) send(world, writer, writer.taking, writer.taking);
    return;
  }
  const { batch } = writer;
  if (!batch?.begun) return;
  const step = stepOf(rules, batch);
  if (step !== 'commit') {
    if (step === 'load-events' || step === 'load-changes') batch.session ??= freshId(world, writer.process);
    send(world, writer, step, nextStep(batch.state));
  } else if (rules.scenario.cut && rules.variant.recordsFirst && !batch.recorded) {
    send(world, writer, 'store-positions', 'store-positions', batch.positions);
  }
}

function send(
  world: World,
  writer: Writer,
  step: StatementStep,
  nominal: StatementStep,
  positions: Statement['positions'] = [],
): void {
  const { process, batch, epoch, generation } = writer;
  const id = freshId(world, process);
  world.statements.push({
    id,
    process,
    step,
    nominal,
    batch: batch?.id ?? null,
    session: batch?.session ?? null,
    epoch,
    generation: generation as number,
    rows: (step === 'store-dead-letters' ? batch?.letters : batch?.rows) ?? [],
    positions,
    phase: 'sent',
    pending: [],
  });
  writer.waitsFor = id;
}

/** The writer that waits for a statement, if one does. */
export function waitingFor(world: World, { id }: Statement): Writer | undefined {
  return world.writers.find(({ waitsFor }) => waitsFor === id);
}

/** Whoever waits for the statement hears how it ended, and goes on. */
export function hear(world: World, rules: Rules, statement: Statement, answer: Answer): void {
  const writer = waitingFor(world, statement);
  if (!writer) return;
  writer.waitsFor = null;
  if (answer === 'fenced') writer.fenced = true;
  const { batch } = writer;
  const { step, nominal } = statement;
  if (step === 'store-positions') {
    if (batch) batch.recorded = answer === 'done';
  } else if (!batch) {
    writer.taking = answer === 'done' ? followingTakeOver(rules, step) : 'newest-epoch';
  } else if (answer === 'refused') batch.state = afterRefusal(batch.state);
  else if (answer !== 'done') batch.state = afterFailure(batch.state);
  else {
    if (step === 'close-session' || step === 'end-own-statements') batch.session = null;
    if (step === 'isolate-bad-rows') isolate(rules, batch);
    else batch.state = afterStep(batch.state, nominal as Step);
  }
  drive(world, rules, writer);
}

function followingTakeOver({ variant }: Rules, step: StatementStep): Writer['taking'] {
  const steps: readonly StatementStep[] = ['newest-epoch', ...variant.takeOverSteps];
  return (steps[steps.indexOf(step) + 1] as Writer['taking'] | undefined) ?? 'open partitions';
}

function isolate(rules: Rules, batch: Batch): void {
  const isPoison = (id: RowId) => rules.rows[id]?.kind === 'poison';
  batch.letters = batch.rows.filter(isPoison);
  batch.rows = batch.rows.filter((id) => !isPoison(id));
  batch.session = null;
  batch.state = newBatch(contentsOf(rules, batch.rows, batch.letters));
}

function contentsOf(rules: Rules, ids: readonly RowId[], letters: readonly RowId[]): BatchContents {
  const kinds = new Set(ids.map((id) => rules.rows[id]?.kind));
  return {
    hasEvents: kinds.has('event') || kinds.has('poison'),
    hasChanges: kinds.has('set') || kinds.has('deletion'),
    hasDeadLetters: letters.length > 0,
  };
}
