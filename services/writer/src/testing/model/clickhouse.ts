import { type Epoch, nextEpoch } from '../../ownership/epoch.ts';
import type { EventRow, Rules } from './rules.ts';
import { type Action, eventsOf, isHidden, isNewer, type RowId, type Statement, type World } from './world.ts';
import { type Answer, hear, waitingFor } from './writer.ts';

/*
 * What ClickHouse does with statements. Each begins at some moment after it was sent, and most are done at once: they
 * may be repeated, so it does not matter what they overlap with. The insert of events begins (and is refused to an
 * older epoch), looks up what is stored, and writes one month after the other.
 */

export function statementActions(world: World, rules: Rules): Action[] {
  return world.statements.map(({ id, step, phase }) => ({
    name: `"${step}" (${id}) goes on, ${phase}`,
    actor: id,
    act: (other) => advance(other, rules, other.statements.find((statement) => statement.id === id) as Statement),
  }));
}

/** An erasure begins only when every insert that did not see the deletion has ended. */
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

export function killClickHouse(world: World, rules: Rules): void {
  world.staged = [];
  const { statements } = world;
  world.statements = [];
  for (const statement of statements) hear(world, rules, statement, 'failed');
}

function advance(world: World, rules: Rules, statement: Statement): void {
  const answer = statement.phase === 'sent' ? begin(world, rules, statement) : goOn(world, rules, statement);
  if (answer) end(world, rules, statement, answer);
}

function end(world: World, rules: Rules, statement: Statement, answer: Answer): void {
  world.statements = world.statements.filter((other) => other !== statement);
  hear(world, rules, statement, answer);
}

function kill(world: World, rules: Rules, which: (statement: Statement) => boolean): void {
  for (const statement of world.statements.filter((other) => other.phase !== 'sent' && which(other))) {
    end(world, rules, statement, 'failed');
  }
}

function begin(world: World, rules: Rules, statement: Statement): Answer | undefined {
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

function tablesOf(world: World, session: string | null): World['staged'][number] | undefined {
  return world.staged.find((tables) => tables.session === session);
}

/** ClickHouse runs one statement of a session at a time. */
function isLocked(world: World, { id, session }: Statement): boolean {
  return session !== null && world.statements.some((o) => o.id !== id && o.phase !== 'sent' && o.session === session);
}

function goOn(world: World, rules: Rules, statement: Statement): Answer | undefined {
  if (statement.step === 'store-events') return storeEvents(world, rules, statement);
  // The end of a writer's own statements: what was running is killed, now the session is closed.
  if (!rules.variant.closesSession || statement.session === null) return 'done';
  if (isLocked(world, statement)) return 'failed';
  world.staged = world.staged.filter(({ session }) => session !== statement.session);
  return 'done';
}

/** Statements that are done at once. */
function perform(world: World, rules: Rules, statement: Statement): Answer {
  const { step, session, epoch, positions } = statement;
  const staged = tablesOf(world, session)?.rows ?? [];
  const changes = staged.flatMap((id) => {
    const row = rules.rows[id];
    return row?.kind === 'set' || row?.kind === 'deletion' ? [{ ...row, user: rules.users.indexOf(row.user) }] : [];
  });
  switch (step) {
    case 'newest-epoch':
      return lookUpEpoch(world, statement);
    case 'record-epoch':
      if (!world.epoch || isNewer(epoch as Epoch, world.epoch)) world.epoch = epoch;
      break;
    case 'end-older-statements':
      kill(world, rules, (other) => other.batch !== null && isOther(other.epoch as Epoch, epoch as Epoch));
      break;
    case 'load-events':
    case 'load-changes':
      return load(world, rules, statement);
    case 'store-deletions':
      for (const { kind, user, at } of changes) if (kind === 'deletion') raise(world.deletions, user, at);
      break;
    case 'store-properties':
      for (const { kind, user, at } of changes) {
        if (kind === 'set' && at > (world.deletions[user] as number)) raise(world.properties, user, at);
      }
      break;
    case 'find-repeats':
      findRepeats(world, rules, session);
      break;
    case 'store-seen-in-events':
      for (const { row } of newEvents(world, rules, session))
        raise(world.seen, rules.users.indexOf(row.user), row.time);
      break;
    case 'close-session':
      world.staged = world.staged.filter((tables) => tables.session !== session);
      break;
    case 'store-dead-letters':
      for (const id of statement.rows) if (!world.letters.includes(id)) world.letters.push(id);
      break;
    case 'store-positions':
      for (const position of positions) world.positions[position.partition] = position;
      break;
    case 'isolate-bad-rows':
    case 'store-sightings':
    case 'store-seen-in-changes':
      // The writer does the first; the others add to tables that nothing here reads.
      break;
    default:
      step satisfies 'store-events' | 'end-own-statements' | 'commit';
  }
  return 'done';
}

function raise(values: number[], index: number, value: number): void {
  values[index] = Math.max(values[index] as number, value);
}

function lookUpEpoch(world: World, statement: Statement): Answer {
  const isMember = world.group.members.includes(statement.process);
  const next = nextEpoch(world.epoch ?? undefined, statement.generation, isMember);
  if (next.outcome === 'fenced') return 'fenced';
  const writer = waitingFor(world, statement);
  if (writer) writer.epoch = next.epoch;
  return 'done';
}

function load(world: World, rules: Rules, { step, rows, session }: Statement): Answer {
  const kinds = step === 'load-events' ? ['event', 'poison'] : ['set', 'deletion'];
  const taken = rows.filter((id) => kinds.includes(rules.rows[id]?.kind ?? ''));
  if (taken.some((id) => rules.rows[id]?.kind === 'poison')) return 'refused';
  const tables = tablesOf(world, session);
  if (tables) tables.rows.push(...taken);
  else world.staged.push({ session: session as string, rows: taken, repeats: [] });
  return 'done';
}

/** The staged events without the repeats that were found. */
function newEvents(world: World, rules: Rules, session: string | null): { id: RowId; row: EventRow }[] {
  const tables = tablesOf(world, session);
  return eventsOf(rules, tables?.rows ?? []).filter(({ id }) => !tables?.repeats.includes(id));
}

/** A stamped event repeats one of the same key and another time, stored or staged; of those staged, the earliest. */
function findRepeats(world: World, rules: Rules, session: string | null): void {
  const tables = tablesOf(world, session);
  if (!tables) return;
  const counts = ({ row }: { row: EventRow }) => !rules.variant.hidesOriginals || !isHidden(world, rules, row);
  const stored = eventsOf(rules, world.stored).filter(counts);
  const staged = eventsOf(rules, tables.rows).filter(({ row }) => row.stamped);
  for (const { id, row } of staged) {
    const [earliest] = staged
      .filter((other) => other.row.key === row.key && counts(other))
      .sort((a, b) => a.row.time - b.row.time);
    const originals = [...stored.filter((other) => other.row.key === row.key), ...(earliest ? [earliest] : [])];
    if (originals.some((other) => other.row.time !== row.time)) tables.repeats.push(id);
  }
}

function storeEvents(world: World, rules: Rules, statement: Statement): Answer | undefined {
  if (statement.phase === 'begun') {
    const stored = eventsOf(rules, world.stored).filter(({ row }) => !isHidden(world, rules, row));
    const known = new Set(rules.variant.looksUp ? stored.map(({ row }) => identityOf(row)) : []);
    for (const { id, row } of newEvents(world, rules, statement.session)) {
      if (isHidden(world, rules, row) || known.has(identityOf(row))) continue;
      if (rules.variant.looksUp) known.add(identityOf(row));
      statement.pending.push(id);
    }
    if (statement.pending.length === 0) return 'done';
    statement.phase = 'halfway';
    return undefined;
  }
  const pending = eventsOf(rules, statement.pending);
  const month = pending[0]?.row.month;
  world.stored.push(...pending.filter(({ row }) => row.month === month).map(({ id }) => id));
  statement.pending = pending.filter(({ row }) => row.month !== month).map(({ id }) => id);
  return statement.pending.length === 0 ? 'done' : undefined;
}

export function identityOf({ key, time }: EventRow): string {
  return `${key}@${time}`;
}

function isOther(a: Epoch, b: Epoch): boolean {
  return a.incarnation !== b.incarnation || a.generation !== b.generation;
}
