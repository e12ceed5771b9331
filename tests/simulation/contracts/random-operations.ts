import { createHash } from 'node:crypto';
import type { ChangeRow, EventRow } from '@sluice/shared/rows';
import { visitorOf } from '@sluice/shared/rows/deleted-person';
import { mergeKeyOf } from '@sluice/shared/rows/merged-user';
import type { RowBatch, RowMessage } from '@sluice/storage/protocol/row-batch';
import type { Random } from '../world/random.ts';

const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;
const NOON_MS = Date.UTC(2026, 2, 1, 12);

/** Few of each, so that rows meet others of the same user, key, organization or property. */
const WORKSPACES = ['one', 'two'];
const USERS = ['', 'ada', 'bob', 'cy'];
const VISITORS = ['', '', 'v1', 'v2'];
const GROUPS = ['', 'acme', 'zoo'];
const PROPERTIES = ['plan', 'name'];
const FAST_LISTS = [[], ['plan'], ['', 'name', 'plan'], ['name', '', 'tags'], ['plan', 'name']];
const DOCUMENTS = [{}, { plan: 'pro' }, { plan: null, name: 1.5 }, { name: 'x', plan: [1] }, { tags: {}, name: '' }];
const TOPICS = ['t.events', 't.entities'];
const OFFSETS_MS = [
  ...[0, 1, MINUTE_MS, 9 * MINUTE_MS, 10 * MINUTE_MS, 10 * MINUTE_MS + 1, 20 * MINUTE_MS],
  ...[-DAY_MS, -31 * DAY_MS, -90 * DAY_MS, -91 * DAY_MS, -400 * DAY_MS],
];

/** Something that a writer or an operator does. It is the same on every engine. */
export type Operation =
  | { readonly kind: 'claim'; readonly generation: number; readonly leaderId: string; readonly isMember: boolean }
  | { readonly kind: 'store'; readonly batch: RowBatch; readonly epoch: number; readonly loseResponseAfter: number }
  | { readonly kind: 'store again'; readonly batch: number; readonly loseResponseAfter: number }
  | { readonly kind: 'end'; readonly batch: number }
  | { readonly kind: 'store positions'; readonly positions: readonly PositionChoice[]; readonly epoch: number }
  | { readonly kind: 'halt'; readonly partition: number; readonly epoch: number | undefined }
  | { readonly kind: 'resume'; readonly partition: number; readonly offset: bigint | undefined }
  | { readonly kind: 'claim database'; readonly group: string }
  | { readonly kind: 'check partitions'; readonly partitions: number }
  | { readonly kind: 'declare'; readonly workspace: string; readonly set: string; readonly names: readonly string[] }
  | { readonly kind: 'fill columns' }
  | { readonly kind: 'forget users without rows' }
  | { readonly kind: 'erase' };

export interface PositionChoice {
  readonly topic: string;
  readonly partition: number;
  readonly from: bigint;
  readonly nextOffset: bigint;
}

/** Chooses what happens next. @param opened how many batches and epochs there are */
export function chooseOperation(
  random: Random,
  opened: { readonly batches: number; readonly epochs: number },
): Operation {
  const someEpoch = () => newestRather(random, opened.epochs);
  const roll = random.next();
  if (opened.epochs === 0 || roll < 0.08) return claim(random, opened.epochs);
  if (roll < 0.12) return declaration(random);
  if (roll < 0.15) return { kind: 'fill columns' };
  const loseResponseAfter = random.isTrue(0.4) ? random.below(15) : Number.MAX_SAFE_INTEGER;
  if (opened.batches === 0 || roll < 0.52)
    return { kind: 'store', batch: randomBatch(random), epoch: someEpoch(), loseResponseAfter };
  if (roll < 0.72) return { kind: 'store again', batch: newestRather(random, opened.batches), loseResponseAfter };
  if (roll < 0.75) return { kind: 'end', batch: newestRather(random, opened.batches) };
  if (roll < 0.82) return { kind: 'store positions', positions: randomPositions(random), epoch: someEpoch() };
  if (roll < 0.85)
    return { kind: 'halt', partition: random.below(2), epoch: random.isTrue(0.7) ? someEpoch() : undefined };
  if (roll < 0.89)
    return {
      ...{ kind: 'resume', partition: random.below(2) },
      offset: random.isTrue(0.5) ? BigInt(random.below(9)) : undefined,
    };
  if (roll < 0.91) return { kind: 'claim database', group: random.pick(['group', 'another group']) };
  if (roll < 0.93) return { kind: 'check partitions', partitions: random.pick([2, 2, 3]) };
  return { kind: random.isTrue(0.5) ? 'erase' : 'forget users without rows' };
}

function claim(random: Random, epochs: number): Operation {
  const generation = Math.max(1, epochs + random.pick([-1, 0, 1, 1, 1]));
  return { kind: 'claim', generation, leaderId: random.pick(['leader 1', 'leader 2']), isMember: random.isTrue(0.5) };
}

function declaration(random: Random): Operation {
  const place = random.below(FAST_LISTS.length);
  // Equal names have equal sets; that of none is 0.
  return {
    kind: 'declare',
    workspace: random.pick(WORKSPACES),
    set: String(place << 16),
    names: FAST_LISTS[place] ?? [],
  };
}

/** Returns an index: mostly the last one. */
function newestRather(random: Random, count: number): number {
  return random.isTrue(0.7) ? count - 1 : random.below(count);
}

function randomBatch(random: Random): RowBatch {
  const count = () => (random.isTrue(0.25) ? 0 : 1 + random.below(6));
  const [events, changes] = [count(), count()];
  const eventLines = Array.from({ length: events }, () => lineOf(random, randomEvent(random)));
  const changeLines = Array.from({ length: changes || (events === 0 ? 1 : 0) }, () =>
    lineOf(random, randomChange(random)),
  );
  return { events: message('events', eventLines), changes: message('changes', changeLines), deadLetters: [] };
}

function message(kind: RowMessage['kind'], lines: readonly string[]): RowMessage[] {
  if (lines.length === 0) return [];
  return [{ kind, topic: `t.${kind}`, partition: 1, offset: '7', value: Buffer.from(`${lines.join('\n')}\n`) }];
}

/** Mostly the row; sometimes one that cannot be stored. */
function lineOf(random: Random, row: EventRow | ChangeRow): string {
  const text = JSON.stringify(row);
  if (!random.isTrue(0.04)) return text;
  // ClickHouse takes them for rows in some places.
  if (random.isTrue(0.4)) return random.pick([`[${text}]`, `${text};`, `${text}${text}`]);
  const isEvent = 'event' in row;
  const bad = [
    { workspace_id: '' },
    isEvent ? { event: '' } : { id: '' },
    isEvent ? { received_at: 0 } : { version: 0 },
    isEvent ? { timestamp: Date.UTC(1999, 11, 31) } : { kind: 'robot' },
    isEvent ? { timestamp: Date.UTC(2100) } : { operation: 'sell' },
    { unknown: 1 },
    null,
  ];
  const change = random.pick(bad);
  return change ? JSON.stringify({ ...row, ...change }) : `[${random.below(1_000)}]`;
}

function randomEvent(random: Random): EventRow {
  const isStamped = random.isTrue(0.4);
  const timestamp = NOON_MS + random.pick(isStamped ? OFFSETS_MS.slice(0, 7) : OFFSETS_MS);
  // An event may have the time of its receipt by chance, and only ingest-api makes sure that a stamped one has.
  const isTimedByReceipt = random.isTrue(isStamped ? 0.9 : 0.1);
  const received_at = isTimedByReceipt ? timestamp * 1_000 + random.below(3) : versionOf(random);
  const [user, visitor, group] = [random.pick(USERS), random.pick(VISITORS), random.pick(GROUPS)];
  return {
    workspace_id: random.pick(WORKSPACES),
    timestamp,
    uuid: uuidOf('event', random.below(5)),
    event: 'e',
    properties: random.pick(DOCUMENTS),
    received_at,
    ...(user !== '' && { user_id: user }),
    ...(visitor !== '' && { anonymous_id: visitor }),
    ...(group !== '' && { group_id: group }),
    ...(isStamped && { stamped: 1 as const }),
  };
}

function randomChange(random: Random): ChangeRow {
  if (random.isTrue(0.25)) return randomLink(random);
  const kind = random.isTrue(0.7) ? 'user' : 'organization';
  const named = random.pick((kind === 'user' ? USERS : GROUPS).slice(1));
  const operation = random.pick([
    'seen',
    'set',
    'set_once',
    'set_once',
    'remove',
    kind === 'user' ? 'delete' : 'seen',
  ] as const);
  const isOfVisitor = operation === 'delete' && random.isTrue(0.4);
  const id = isOfVisitor ? visitorOf(random.pick(VISITORS.slice(2))) : named;
  const group_id = kind === 'user' && operation === 'seen' ? random.pick(GROUPS) : '';
  return {
    ...{ workspace_id: random.pick(WORKSPACES), kind, id, operation, version: versionOf(random) },
    change_id: uuidOf('change', random.below(20)),
    ...(operation !== 'seen' && operation !== 'delete' && { property: random.pick(PROPERTIES) }),
    ...((operation === 'set' || operation === 'set_once') && { value: JSON.stringify(random.below(3)) }),
    ...(group_id !== '' && { group_id }),
  };
}

/** What says whose a visitor is, or whom a user became. */
function randomLink(random: Random): ChangeRow {
  const operation = random.pick(['link', 'link', 'say'] as const);
  const user_id = random.pick(operation === 'say' ? USERS : USERS.slice(1));
  const isMerge = operation === 'say' && random.isTrue(0.5);
  const id = isMerge ? mergeKeyOf(random.pick(USERS.slice(1))) : random.pick(VISITORS.slice(2));
  return {
    ...{ workspace_id: random.pick(WORKSPACES), kind: 'visitor', id, operation, version: versionOf(random) },
    change_id: uuidOf('change', random.below(20)),
    ...(user_id !== '' && { user_id }),
  };
}

/** A time of receipt, in microseconds. Few, so that some are the same; now and then of another week. */
function versionOf(random: Random): number {
  return (NOON_MS + random.pick([1, 1, 1, 8]) * DAY_MS) * 1_000 + random.below(12);
}

function uuidOf(purpose: string, number: number): string {
  const digits = createHash('sha256').update(`${purpose} ${number}`).digest('hex');
  return `${digits.slice(0, 8)}-${digits.slice(8, 12)}-4${digits.slice(13, 16)}-8${digits.slice(17, 20)}-${digits.slice(20, 32)}`;
}

function randomPositions(random: Random): PositionChoice[] {
  return TOPICS.slice(random.below(2)).map((topic) => {
    const from = BigInt(random.isTrue(0.5) ? 0 : random.below(10));
    return { topic, partition: random.below(2), from, nextOffset: from + BigInt(random.below(5)) };
  });
}

/** Returns an operation as text, for a person who looks for what went wrong. */
export function describeOperation(operation: Operation): string {
  return JSON.stringify(operation, (name, value) => {
    if (name === 'value') return Buffer.from(value.data ?? value).toString();
    return typeof value === 'bigint' ? String(value) : value;
  });
}
