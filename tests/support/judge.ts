import { setTimeout as delay } from 'node:timers/promises';
import type { Action, Operation, SentEvent, Tally } from './load.ts';
import type { Pipeline } from './pipeline.ts';
import type { EntityRecord, EventPage } from './records.ts';

/** What a load's clients were told, compared with what is stored and served. Each list is empty when all is well. */
export interface Verdict {
  /** Events that were acknowledged. */
  readonly accepted: number;
  /** Events whose acknowledgement never came: they may be stored, but need not. */
  readonly unknown: number;
  /** Events that are visible. */
  readonly visible: number;
  /** Users and organizations whose state was compared with the reference. */
  readonly entities: number;
  /** Acknowledged events that are not visible. */
  readonly lost: readonly string[];
  /** Events that are stored more than once. */
  readonly doubled: readonly string[];
  /** Visible events that nobody sent, or whose user was deleted after them. */
  readonly invented: readonly string[];
  /** Users and organizations that differ from a fold of their operations, and counts that differ from the rows. */
  readonly wrong: readonly string[];
  readonly deadLetters: number;
  /** Answers other than success and those that ask to try again. */
  readonly refused: readonly string[];
}

interface StoredEvent {
  readonly uuid: string;
  readonly timestamp: number;
  readonly groupId: string;
  readonly rows: number;
  readonly visible: number;
}

/** How long everything may take to be stored once nothing fails any more, in milliseconds. */
const SETTLE_MS = 120_000;

/** Compares a load that has ended with what is stored, once everything has settled. */
export async function judge(
  pipeline: Pick<Pipeline, 'database' | 'get'>,
  clickhouseUrl: string,
  tally: Tally,
): Promise<Verdict> {
  const expected = expectedEvents(tally.operations);
  const stored = await settled(() => readEvents(pipeline.database, clickhouseUrl, tally.name), expected);
  const visible = stored.filter((event) => event.visible > 0);
  const visibleKeys = new Set(visible.map(keyOf));
  const users = ofEntities(tally.operations, 'user');
  const organizations = ofEntities(tally.operations, 'organization');
  const wrong = [
    ...(await wrongEntities(pipeline, '/users', users)),
    ...(await wrongEntities(pipeline, '/organizations', organizations)),
    ...(await wrongTotals(pipeline, visible, [...organizations.keys()])),
  ];
  return {
    accepted: tally.accepted.size,
    unknown: [...expected.values()].filter(({ acknowledged }) => !acknowledged).length,
    visible: visible.length,
    entities: users.size + organizations.size,
    lost: [...expected].filter(([key, { must }]) => must && !visibleKeys.has(key)).map(([key]) => key),
    doubled: stored.filter(isDoubled(expected)).map(keyOf),
    invented: [...visibleKeys].filter((key) => !expected.get(key)?.may),
    wrong,
    deadLetters: await countDeadLetters(pipeline.database, clickhouseUrl),
    refused: tally.refused,
  };
}

/** Whether nothing was lost, doubled, invented or refused, and every user and organization is as it should be. */
export function isFlawless({ lost, doubled, invented, wrong, deadLetters, refused }: Verdict): boolean {
  return [lost, doubled, invented, wrong, refused].every((faults) => faults.length === 0) && deadLetters === 0;
}

interface ExpectedEvent {
  readonly acknowledged: boolean;
  /** It has to be visible. */
  readonly must: boolean;
  /** It can be visible. */
  readonly may: boolean;
  /** An attempt that was not heard of may still arrive, even after a later deletion. */
  readonly late: boolean;
  /** Its user was deleted at some time, so a hidden row of it may be there besides the visible one. */
  readonly deleted: boolean;
}

const NEVER_SENT: ExpectedEvent = { acknowledged: false, must: false, may: false, late: false, deleted: false };

const keyOf = ({ uuid, timestamp }: SentEvent) => `${uuid}@${timestamp}`;

/** What is to become of each event, by its key. Operations of one user are in the order in which they were done. */
function expectedEvents(operations: readonly Operation[]): Map<string, ExpectedEvent> {
  const expected = new Map<string, ExpectedEvent>();
  const keysOfUsers = new Map<string, Set<string>>();
  const uncertainUsers = new Set<string>();
  const update = (key: string, change: (before: ExpectedEvent) => Partial<ExpectedEvent>) => {
    const before = expected.get(key) ?? NEVER_SENT;
    expected.set(key, { ...before, ...change(before) });
  };

  for (const { action, outcome, clear } of operations) {
    if (action.kind === 'set') continue;
    const accepted = outcome === 'accepted';
    const keys = keysOfUsers.get(action.user) ?? new Set();
    keysOfUsers.set(action.user, keys);
    if (action.kind === 'events') {
      for (const key of action.events.map(keyOf)) {
        keys.add(key);
        update(key, (before) => ({
          acknowledged: before.acknowledged || accepted,
          must: before.must || accepted,
          may: true,
          late: before.late || !clear,
        }));
      }
      continue;
    }
    // An attempt that was not heard of may also delete what is sent after it.
    if (!clear) uncertainUsers.add(action.user);
    for (const key of keys) {
      update(key, (before) => ({ must: false, may: before.late || (before.may && !accepted), deleted: true }));
    }
  }
  for (const user of uncertainUsers) {
    for (const key of keysOfUsers.get(user) ?? []) update(key, () => ({ must: false, deleted: true }));
  }
  return expected;
}

/** Reads again and again until every event that has to be there is, and nothing changes any more. */
async function settled(
  read: () => Promise<StoredEvent[]>,
  expected: ReadonlyMap<string, ExpectedEvent>,
): Promise<StoredEvent[]> {
  const awaited = [...expected].filter(([, { must }]) => must).map(([key]) => key);
  const deadline = Date.now() + SETTLE_MS;
  let rowsBefore = -1;
  for (;;) {
    const startedAt = performance.now();
    const stored = await read();
    const visible = new Set(stored.filter((event) => event.visible > 0).map(keyOf));
    const rows = stored.reduce((sum, event) => sum + event.rows, 0);
    const complete = awaited.every((key) => visible.has(key));
    if ((complete && rows === rowsBefore) || Date.now() > deadline) return stored;
    rowsBefore = complete ? rows : -1;
    await delay(complete ? 1_500 : 250 + 3 * (performance.now() - startedAt));
  }
}

async function readEvents(database: string, clickhouseUrl: string, load: string): Promise<StoredEvent[]> {
  const sql = `
    WITH deletions AS (
      SELECT user_id, max(version) AS deleted FROM user_deletions WHERE workspace_id = 'test' GROUP BY user_id
    )
    SELECT
      toString(uuid) AS uuid,
      toUnixTimestamp64Milli(timestamp) AS timestamp,
      any(group_id) AS groupId,
      count() AS rows,
      countIf(toUnixTimestamp64Micro(received_at) > deleted) AS visible
    FROM events
    LEFT JOIN deletions USING (user_id)
    WHERE workspace_id = 'test' AND startsWith(group_id, {load:String})
    GROUP BY ALL
    FORMAT JSONEachRow
    SETTINGS output_format_json_quote_64bit_integers = 0`;
  const text = await ask(clickhouseUrl, database, sql, { load });
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as StoredEvent);
}

async function countDeadLetters(database: string, clickhouseUrl: string): Promise<number> {
  return Number(await ask(clickhouseUrl, database, 'SELECT count() FROM dead_letters FINAL FORMAT TSV', {}));
}

async function ask(
  clickhouseUrl: string,
  database: string,
  sql: string,
  parameters: Readonly<Record<string, string>>,
): Promise<string> {
  const query = new URLSearchParams({ database });
  for (const [name, value] of Object.entries(parameters)) query.set(`param_${name}`, value);
  const response = await fetch(`${clickhouseUrl}/?${query}`, { method: 'POST', body: sql });
  const text = await response.text();
  if (!response.ok) throw new Error(text);
  return text;
}

function isDoubled(expected: ReadonlyMap<string, ExpectedEvent>): (event: StoredEvent) => boolean {
  return (event) => event.visible > 1 || (event.rows > 1 && !expected.get(keyOf(event))?.deleted);
}

/** The operations that concern each user, or each organization, in order. */
function ofEntities(operations: readonly Operation[], kind: 'user' | 'organization'): Map<string, Operation[]> {
  const found = new Map<string, Operation[]>();
  for (const operation of operations) {
    const id = entityOf(operation.action, kind);
    if (id !== undefined) found.set(id, [...(found.get(id) ?? []), operation]);
  }
  return found;
}

function entityOf(action: Action, kind: 'user' | 'organization'): string | undefined {
  switch (action.kind) {
    case 'events':
      return kind === 'user' ? action.user : action.group;
    case 'set':
      return kind === action.entity ? action.id : undefined;
    case 'delete':
      return kind === 'user' ? action.user : undefined;
  }
}

async function wrongEntities(
  pipeline: Pick<Pipeline, 'get'>,
  path: string,
  entities: ReadonlyMap<string, readonly Operation[]>,
): Promise<string[]> {
  const wrong: string[] = [];
  for (const [id, operations] of entities) {
    const { status, body } = await pipeline.get<EntityRecord>(`${path}/${encodeURIComponent(id)}`);
    if (status !== 200 && status !== 404) wrong.push(`${id}: ${status}`);
    const entity = status === 200 ? body : undefined;
    wrong.push(...wrongProperties(id, entity, operations), ...wrongSightings(id, entity, operations));
  }
  return wrong;
}

/** What a property may be at the end: a number, or `undefined` when it is not set. */
function wrongProperties(id: string, entity: EntityRecord | undefined, operations: readonly Operation[]): string[] {
  const sets = operations.flatMap(({ action }) => (action.kind === 'set' ? [action.property] : []));
  const properties = new Set([...sets, ...Object.keys(entity?.properties ?? {})]);
  return [...properties].flatMap((property) => {
    const possible = possibleValues(property, operations);
    const value = entity?.properties[property] as number | undefined;
    return possible.has(value) ? [] : [`${id}: ${property} is ${value}, not ${[...possible].join(' or ')}`];
  });
}

function possibleValues(property: string, operations: readonly Operation[]): Set<number | undefined> {
  let possible = new Set<number | undefined>([undefined]);
  // What may take effect at any later time.
  const late = new Set<number | undefined>();
  for (const { action, outcome, clear } of operations) {
    if (action.kind === 'events' || (action.kind === 'set' && action.property !== property)) continue;
    const value = action.kind === 'set' ? (action.value ?? undefined) : undefined;
    if (!clear) late.add(value);
    possible = outcome === 'accepted' ? new Set([value]) : possible.add(value);
  }
  return possible.union(late);
}

/** Seen first and last: exact where every answer came, within bounds where some did not. Not after a deletion. */
function wrongSightings(id: string, entity: EntityRecord | undefined, operations: readonly Operation[]): string[] {
  if (operations.some(({ action }) => action.kind === 'delete')) return [];
  const accepted = operations.filter(({ outcome }) => outcome === 'accepted');
  if (accepted.length === 0) return [];
  if (!entity) return [`${id} is missing`];
  const first = Date.parse(entity.firstSeenAt);
  const last = Date.parse(entity.lastSeenAt);
  const certain = accepted.flatMap(timesOf);
  const all = operations.flatMap(timesOf);
  const firstFits =
    first <= Math.min(...certain.map(({ to }) => to)) && first >= Math.min(...all.map(({ from }) => from));
  const lastFits = last >= Math.max(...certain.map(({ from }) => from)) && last <= Math.max(...all.map(({ to }) => to));
  return firstFits && lastFits ? [] : [`${id} was seen from ${entity.firstSeenAt} to ${entity.lastSeenAt}`];
}

/** When an operation says that somebody was seen: events at their timestamps, a change when it was received. */
function timesOf({ action, at }: Operation): { readonly from: number; readonly to: number }[] {
  if (action.kind === 'events') return action.events.map(({ timestamp }) => ({ from: timestamp, to: timestamp }));
  return [{ from: at, to: Date.now() }];
}

/** What query-api counts has to be what the rows say. */
async function wrongTotals(
  pipeline: Pick<Pipeline, 'get'>,
  visible: readonly StoredEvent[],
  groups: readonly string[],
): Promise<string[]> {
  const wrong: string[] = [];
  for (const group of groups) {
    const rows = visible.filter(({ groupId }) => groupId === group).length;
    const { body } = await pipeline.get<EventPage>(`/events?limit=0&groupId=${encodeURIComponent(group)}`);
    if (body.total !== rows) wrong.push(`${group} has ${body.total} events, not ${rows}`);
  }
  return wrong;
}
