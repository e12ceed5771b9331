import type { Epoch } from '../../protocol/epoch.ts';
import { identityOf, perform, storeEvents, tablesOf } from './clickhouse-statements.ts';
import type { Rules } from './rules.ts';
import { type Action, eventsOf, isHidden, isNewer, type Statement, type World } from './world.ts';
import { receiveResult, type StatementResult } from './writer-statements.ts';

/*
 * When ClickHouse runs statements. Each begins at some moment after it was sent. Most are done at once: they may be
 * repeated, so it does not matter what else runs meanwhile. The insert of events takes several actions: it begins (or is
 * refused, when its epoch is fenced), and writes one month after the other.
 */

export function statementActions(world: World, rules: Rules): Action[] {
  return world.statements.map(({ id, step, phase }) => ({
    name: `"${step}" (${id}) goes on, ${phase}`,
    actor: id,
    act: (other) => advance(other, rules, other.statements.find((statement) => statement.id === id) as Statement),
  }));
}

/** An erasure begins only after every insert that did not see the deletion has ended. */
export function erasureActions(world: World, rules: Rules): Action[] {
  const inserting = world.statements.some(({ phase, step }) => phase !== 'sent' && step === 'store-events');
  if (!rules.scenario.erases || inserting) return [];
  const due = rules.users.filter((_, user) => (world.deletions[user] ?? -1) > (world.erased[user] ?? -1));
  return due.map((name) => ({
    name: `${name} is erased`,
    act(other) {
      const user = rules.users.indexOf(name);
      const hidden = eventsOf(rules, other.stored).filter(
        ({ row }) => row.user === name && isHidden(other, rules, row),
      );
      other.stored = other.stored.filter((id) => !hidden.some((event) => event.id === id));
      other.erased[user] = other.deletions[user] as number;
    },
  }));
}

/** The table keeps the newer of two rows with the same key when it merges their parts: the older one is hidden. */
export function mergeActions(world: World, rules: Rules): Action[] {
  const stored = eventsOf(rules, world.stored);
  return stored.flatMap(({ id, row }) => {
    const isOlder = stored.some(
      (other) => other.id > id && other.row.month === row.month && identityOf(other.row) === identityOf(row),
    );
    if (!isOlder) return [];
    const act = (other: World) => {
      other.stored = other.stored.filter((kept) => kept !== id);
    };
    return [{ name: `a merge removes ${row.key} of ${row.at}`, act }];
  });
}

export function killClickHouse(world: World, rules: Rules): void {
  world.staged = [];
  const { statements } = world;
  world.statements = [];
  for (const statement of statements) receiveResult(world, rules, statement, 'failed');
}

function advance(world: World, rules: Rules, statement: Statement): void {
  const result = statement.phase === 'sent' ? begin(world, rules, statement) : goOn(world, rules, statement);
  if (result) end(world, rules, statement, result);
}

function end(world: World, rules: Rules, statement: Statement, result: StatementResult): void {
  world.statements = world.statements.filter((other) => other !== statement);
  receiveResult(world, rules, statement, result);
}

function kill(world: World, rules: Rules, which: (statement: Statement) => boolean): void {
  for (const statement of world.statements.filter((other) => other.phase !== 'sent' && which(other))) {
    end(world, rules, statement, 'failed');
  }
}

function begin(world: World, rules: Rules, statement: Statement): StatementResult | undefined {
  const { step, session, epoch } = statement;
  const isLoad = step === 'load-events' || step === 'load-changes';
  const usesSession = isLoad || SESSION_STEPS.has(step);
  if (usesSession && (isLocked(world, statement) || !(isLoad || tablesOf(world, session)))) return 'failed';
  if (step === 'store-events' || step === 'store-positions') {
    if (rules.variant.fenced && world.epoch && isNewer(world.epoch, epoch as Epoch)) return 'fenced';
  }
  if (step === 'store-events') {
    statement.phase = 'begun';
    return undefined;
  }
  if (step === 'end-own-statements') {
    const { batch } = statement;
    if (rules.variant.endsOwn) kill(world, rules, (other) => other.batch === batch && other.id !== statement.id);
    statement.phase = 'begun';
    return undefined;
  }
  if (step === 'end-older-statements') {
    kill(world, rules, (other) => other.batch !== null && isOther(other.epoch as Epoch, epoch as Epoch));
    return 'done';
  }
  return perform(world, rules, statement);
}

const SESSION_STEPS = new Set<string>([
  'store-deletions',
  'store-properties',
  'store-sightings',
  'store-seen-in-changes',
  'find-repeats',
  'store-seen-in-events',
  'store-events',
  'close-session',
]);

/** ClickHouse runs one statement of a session at a time. */
function isLocked(world: World, { id, session }: Statement): boolean {
  return session !== null && world.statements.some((o) => o.id !== id && o.phase !== 'sent' && o.session === session);
}

function goOn(world: World, rules: Rules, statement: Statement): StatementResult | undefined {
  if (statement.step === 'store-events') return storeEvents(world, rules, statement);
  // end-own-statements: the running statements are killed, and now the session is closed.
  if (!rules.variant.closesSession || statement.session === null) return 'done';
  if (isLocked(world, statement)) return 'failed';
  world.staged = world.staged.filter(({ session }) => session !== statement.session);
  return 'done';
}

function isOther(a: Epoch, b: Epoch): boolean {
  return a.incarnation !== b.incarnation || a.generation !== b.generation;
}
