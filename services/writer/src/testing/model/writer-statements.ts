import {
  afterFailure,
  afterRefusal,
  afterStep,
  type BatchContents,
  newBatch,
  nextStep,
  type Step,
} from '../../protocol/steps.ts';
import type { Rules } from './rules.ts';
import {
  type Batch,
  type RowId,
  type Statement,
  type StatementStep,
  stepOf,
  type World,
  type Writer,
} from './world.ts';
import { freshId } from './world-key.ts';

/*
 * Which statements a writer sends to ClickHouse, and what it does with the responses. A writer that gets a response sends
 * the next statement at once: a writer that is slow to send is like a statement that is slow to begin.
 */

export type StatementResult = 'done' | 'refused' | 'failed' | 'fenced';

/** Sends the statement that comes next, if one does. */
export function sendNext(world: World, rules: Rules, writer: Writer): void {
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
  } else if (rules.scenario.cut && rules.variant.storesPositionFirst && !batch.recorded) {
    send(world, writer, 'store-positions', 'store-positions', batch.positions);
  }
}

export function send(
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
    rows: (step === 'store-dead-letters' ? batch?.deadLetters : batch?.rows) ?? [],
    positions,
    phase: 'sent',
    pending: [],
  });
  writer.waitsFor = id;
}

/** Returns the writer that waits for a statement, if one does. */
export function waitingFor(world: World, { id }: Statement): Writer | undefined {
  return world.writers.find(({ waitsFor }) => waitsFor === id);
}

/** The writer that waits for the statement learns its result, and goes on. */
export function receiveResult(world: World, rules: Rules, statement: Statement, result: StatementResult): void {
  const writer = waitingFor(world, statement);
  if (!writer) return;
  writer.waitsFor = null;
  if (result === 'fenced') writer.fenced = true;
  const { batch } = writer;
  const { step, nominal } = statement;
  if (step === 'store-positions') {
    if (batch) batch.recorded = result === 'done';
  } else if (!batch) {
    writer.taking = result === 'done' ? followingTakeOver(rules, step) : 'newest-epoch';
  } else if (result === 'refused') batch.state = afterRefusal(batch.state);
  else if (result !== 'done') batch.state = afterFailure(batch.state);
  else {
    if (step === 'close-session' || step === 'end-own-statements') batch.session = null;
    if (step === 'isolate-bad-rows') isolate(rules, batch);
    else batch.state = afterStep(batch.state, nominal as Step);
  }
  sendNext(world, rules, writer);
}

function followingTakeOver({ variant }: Rules, step: StatementStep): Writer['taking'] {
  const steps: readonly StatementStep[] = ['newest-epoch', ...variant.takeOverSteps];
  return (steps[steps.indexOf(step) + 1] as Writer['taking'] | undefined) ?? 'open partitions';
}

function isolate(rules: Rules, batch: Batch): void {
  const isPoison = (id: RowId) => rules.rows[id]?.kind === 'poison';
  batch.deadLetters = batch.rows.filter(isPoison);
  batch.rows = batch.rows.filter((id) => !isPoison(id));
  batch.session = null;
  batch.state = newBatch(contentsOf(rules, batch.rows, batch.deadLetters));
}

export function contentsOf(rules: Rules, ids: readonly RowId[], deadLetters: readonly RowId[]): BatchContents {
  const kinds = new Set(ids.map((id) => rules.rows[id]?.kind));
  return {
    hasEvents: kinds.has('event') || kinds.has('poison'),
    hasChanges: kinds.has('set') || kinds.has('deletion'),
    hasDeadLetters: deadLetters.length > 0,
  };
}
