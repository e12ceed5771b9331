import { type Epoch, nextEpoch } from '../../protocol/epoch.ts';
import type { Rules } from './rules.ts';
import type { EventRow } from './scenario.ts';
import { eventsOf, isHidden, isNewer, type RowId, type Statement, type World } from './world.ts';
import { type StatementResult, waitingFor } from './writer-statements.ts';

/* What the statements change: each of them stands for the SQL file of the same name. */

/** Runs a statement that is done at once. */
export function perform(world: World, rules: Rules, statement: Statement): StatementResult {
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
      for (const id of statement.rows) if (!world.deadLetters.includes(id)) world.deadLetters.push(id);
      break;
    case 'store-positions':
      for (const position of positions) world.positions[position.partition] = position;
      break;
    case 'isolate-bad-rows':
    case 'store-sightings':
    case 'store-seen-in-changes':
      // The writer itself isolates bad rows; the other statements insert into tables that the model does not read.
      break;
    default:
      step satisfies 'store-events' | 'end-own-statements' | 'end-older-statements' | 'commit';
  }
  return 'done';
}

function raise(values: number[], index: number, value: number): void {
  values[index] = Math.max(values[index] as number, value);
}

function lookUpEpoch(world: World, statement: Statement): StatementResult {
  const isMember = world.group.members.includes(statement.process);
  // Kafka forgets a group only when nobody of it is left, so a number is of one generation.
  const newest = world.epoch ? { ...world.epoch, leaderIds: ['leader'] } : undefined;
  const joined = { generation: statement.generation, memberId: String(statement.process), leaderId: 'leader' };
  const next = nextEpoch(newest, joined, isMember);
  if (!next) return 'fenced';
  const writer = waitingFor(world, statement);
  if (writer) writer.epoch = next;
  return 'done';
}

function load(world: World, rules: Rules, { step, rows, session }: Statement): StatementResult {
  const kinds = step === 'load-events' ? ['event', 'poison'] : ['set', 'deletion'];
  const taken = rows.filter((id) => kinds.includes(rules.rows[id]?.kind ?? ''));
  if (taken.some((id) => rules.rows[id]?.kind === 'poison')) return 'refused';
  const tables = tablesOf(world, session);
  if (tables) tables.rows.push(...taken);
  else world.staged.push({ session: session as string, rows: taken, repeats: [] });
  return 'done';
}

/** Returns the staged events without the repeats that were found. */
function newEvents(world: World, rules: Rules, session: string | null): { id: RowId; row: EventRow }[] {
  const tables = tablesOf(world, session);
  return eventsOf(rules, tables?.rows ?? []).filter(({ id }) => !tables?.repeats.includes(id));
}

/**
 * A staged event is a repeat when one with the same identity, or of stamped ones another with the same key, is stored and
 * not hidden, or is staged and comes first.
 */
function findRepeats(world: World, rules: Rules, session: string | null): void {
  const tables = tablesOf(world, session);
  if (!tables) return;
  const staged = eventsOf(rules, tables.rows);
  const stagedUsers = new Set(staged.map(({ row }) => row.user));
  const stored = eventsOf(rules, world.stored).filter(({ row }) => {
    const isAsked = rules.variant.asksStoredUsers || stagedUsers.has(row.user);
    return !(rules.variant.hidesOriginals && isAsked && isHidden(world, rules, row));
  });
  const originals = rules.variant.looksUp ? stored : [];
  const candidates = staged
    .filter(({ row }) => !rules.variant.hidesOriginals || !isHidden(world, rules, row))
    .sort((a, b) => a.row.at - b.row.at);
  for (const { id, row } of staged) {
    const first = candidates.find((other) => identityOf(other.row) === identityOf(row));
    const earliest = candidates
      .filter((other) => row.stamped && other.row.stamped && other.row.key === row.key)
      .reduce<EventRow>((least, other) => (other.row.time < least.time ? other.row : least), row);
    const isRepeat =
      originals.some((other) => identityOf(other.row) === identityOf(row)) ||
      originals.some((other) => row.stamped && other.row.key === row.key) ||
      (first !== undefined && first.id !== id) ||
      earliest.time !== row.time;
    if (isRepeat) tables.repeats.push(id);
  }
}

export function storeEvents(world: World, rules: Rules, statement: Statement): StatementResult | undefined {
  if (statement.phase === 'begun') {
    const shown = newEvents(world, rules, statement.session).filter(({ row }) => !isHidden(world, rules, row));
    statement.pending.push(...shown.map(({ id }) => id));
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

export function tablesOf(world: World, session: string | null): World['staged'][number] | undefined {
  return world.staged.find((tables) => tables.session === session);
}
