import { readClickHouse } from './clickhouse.ts';
import type { Action, Operation, SentEvent, Tally } from './load.ts';
import type { Pipeline } from './pipeline.ts';
import type { EntityRecord, EventPage } from './records.ts';

/** What a load's clients were told, compared with what is stored and served. Each list is empty when all is well. */
export interface Verdict {
  /** Events that were acknowledged. */
  readonly accepted: number;
  /** Events whose acknowledgement never came: they may be stored, but need not. */
  readonly unknown: number;
  /** Events that have to be visible: acknowledged, and certainly not deleted afterwards. */
  readonly required: number;
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
  /** Events that differ from what was sent, users and organizations that differ from a fold of their operations. */
  readonly wrong: readonly string[];
  readonly deadLetters: number;
  /** Answers other than success and those that ask to try again. */
  readonly refused: readonly string[];
}

interface StoredEvent {
  readonly uuid: string;
  readonly timestamp: number;
  readonly userId: string;
  readonly groupId: string;
  readonly rows: number;
  readonly visible: number;
  /** Rows whose name or properties are not those that were sent. */
  readonly altered: number;
}

/** Compares a load that has ended with what is stored, once everything has settled. */
export async function judge(
  pipeline: Pick<Pipeline, 'database' | 'get' | 'drained'>,
  clickhouseUrl: string,
  tally: Tally,
): Promise<Verdict> {
  const { database } = pipeline;
  const expected = expectedEvents(tally.operations);
  await pipeline.drained();
  const stored = await readEvents(database, clickhouseUrl, tally.name);
  const visible = stored.filter((event) => event.visible > 0);
  const visibleKeys = new Set(visible.map(keyOf));
  const users = ofEntities(tally.operations, 'user');
  const organizations = ofEntities(tally.operations, 'organization');
  const wrong = [
    ...wrongEvents(stored, expected),
    ...(await unknownEntities(database, clickhouseUrl, tally.name, [...users.keys(), ...organizations.keys()])),
    ...(await wrongEntities(pipeline, '/users', users)),
    ...(await wrongEntities(pipeline, '/organizations', organizations)),
    ...(await wrongTotals(pipeline, visible, [...organizations.keys()])),
  ];
  return {
    accepted: tally.accepted.size,
    unknown: [...expected.values()].filter(({ acknowledged }) => !acknowledged).length,
    required: [...expected.values()].filter(({ must }) => must).length,
    visible: visible.length,
    entities: users.size + organizations.size,
    lost: [...expected].filter(([key, { must }]) => must && !visibleKeys.has(key)).map(([key]) => key),
    doubled: stored.filter(isDoubled(expected)).map(keyOf),
    invented: [...visibleKeys].filter((key) => !expected.get(key)?.may),
    wrong,
    deadLetters: await countDeadLetters(database, clickhouseUrl),
    refused: tally.refused,
  };
}

/** Whether nothing was lost, doubled, invented or refused, and every user and organization is as it should be. */
export function isFlawless({ lost, doubled, invented, wrong, deadLetters, refused }: Verdict): boolean {
  return [lost, doubled, invented, wrong, refused].every((faults) => faults.length === 0) && deadLetters === 0;
}

interface ExpectedEvent {
  readonly user: string;
  readonly group: string;
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

const NEVER_SENT = { acknowledged: false, must: false, may: false, late: false, deleted: false };

const keyOf = ({ uuid, timestamp }: SentEvent) => `${uuid}@${timestamp}`;

/** What is to become of each event, by its key. Operations of one user are in the order in which they were done. */
function expectedEvents(operations: readonly Operation[]): Map<string, ExpectedEvent> {
  const expected = new Map<string, ExpectedEvent>();
  const keysOfUsers = new Map<string, Set<string>>();
  const uncertainUsers = new Set<string>();
  const update = (key: string, change: (before: ExpectedEvent) => Partial<ExpectedEvent>) => {
    const before = expected.get(key) ?? { ...NEVER_SENT, user: '', group: '' };
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
          user: action.user,
          group: action.group,
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

async function readEvents(database: string, clickhouseUrl: string, load: string): Promise<StoredEvent[]> {
  const sql = `
    WITH deletions AS (
      SELECT user_id, max(version) AS deleted FROM user_deletions WHERE workspace_id = 'test' GROUP BY user_id
    )
    SELECT
      toString(uuid) AS uuid,
      toUnixTimestamp64Milli(timestamp) AS timestamp,
      any(user_id) AS userId,
      any(group_id) AS groupId,
      count() AS rows,
      countIf(toUnixTimestamp64Micro(received_at) > deleted) AS visible,
      countIf(event != 'load' OR JSONExtractString(properties, 'uuid') != toString(events.uuid)) AS altered
    FROM events
    LEFT JOIN deletions USING (user_id)
    WHERE workspace_id = 'test' AND startsWith(group_id, concat({load:String}, '-'))
    GROUP BY ALL
    FORMAT JSONEachRow
    SETTINGS output_format_json_quote_64bit_integers = 0`;
  const text = await readClickHouse(clickhouseUrl, sql, { database, parameters: { load } });
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as StoredEvent);
}

function wrongEvents(stored: readonly StoredEvent[], expected: ReadonlyMap<string, ExpectedEvent>): string[] {
  return stored.flatMap((event) => {
    const sent = expected.get(keyOf(event));
    const fits = event.altered === 0 && (!sent || (sent.user === event.userId && sent.group === event.groupId));
    return fits ? [] : [`${keyOf(event)} is not what was sent`];
  });
}

async function unknownEntities(
  database: string,
  clickhouseUrl: string,
  load: string,
  known: readonly string[],
): Promise<string[]> {
  const sql = `SELECT DISTINCT id FROM entities WHERE startsWith(id, concat({load:String}, '-')) FORMAT TSV`;
  const ids = (await readClickHouse(clickhouseUrl, sql, { database, parameters: { load } }))
    .split('\n')
    .filter((id) => id !== '');
  return [...new Set(ids).difference(new Set(known))].map((id) => `${id} was never sent`);
}

async function countDeadLetters(database: string, clickhouseUrl: string): Promise<number> {
  return Number(await readClickHouse(clickhouseUrl, 'SELECT count() FROM dead_letters FINAL FORMAT TSV', { database }));
}

function isDoubled(expected: ReadonlyMap<string, ExpectedEvent>): (event: StoredEvent) => boolean {
  return (event) => event.visible > 1 || (event.rows > 1 && !expected.get(keyOf(event))?.deleted);
}

/** The operations that concern each user, or each organization, in order. */
function ofEntities(operations: readonly Operation[], kind: 'user' | 'organization'): Map<string, Operation[]> {
  const found = new Map<string, Operation[]>();
  for (const operation of operations) {
    const id = entityOf(operation.action, kind);
    if (id === undefined) continue;
    const ofEntity = found.get(id);
    if (ofEntity) ofEntity.push(operation);
    else found.set(id, [operation]);
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
    if (entity && isGone(operations)) wrong.push(`${id} was deleted, but is there`);
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

/** Whether the last that was done to a user is a deletion, and nothing that was done before can take effect later. */
function isGone(operations: readonly Operation[]): boolean {
  return operations.at(-1)?.action.kind === 'delete' && operations.every(({ clear }) => clear);
}

/** Seen first and last: exact where every answer came, within bounds where some did not. Not after a deletion. */
function wrongSightings(id: string, entity: EntityRecord | undefined, operations: readonly Operation[]): string[] {
  if (operations.some(({ action }) => action.kind === 'delete')) return [];
  const certain = seenBetween(operations.filter(({ outcome }) => outcome === 'accepted'));
  const possible = seenBetween(operations);
  if (certain.earliest > certain.latest) return [];
  if (!entity) return [`${id} is missing`];
  const first = Date.parse(entity.firstSeenAt);
  const last = Date.parse(entity.lastSeenAt);
  const fits =
    first <= certain.firstAtMost &&
    first >= possible.earliest &&
    last >= certain.lastAtLeast &&
    last <= possible.latest;
  return fits ? [] : [`${id} was seen from ${entity.firstSeenAt} to ${entity.lastSeenAt}`];
}

/** When operations say that somebody was seen: events at their timestamps, a change between its begin and its end. */
function seenBetween(operations: readonly Operation[]) {
  const bounds = { earliest: Infinity, firstAtMost: Infinity, lastAtLeast: -Infinity, latest: -Infinity };
  for (const { action, at, endedAt, clear } of operations) {
    // An attempt that was not heard of may take effect at any later time.
    const spans =
      action.kind === 'events'
        ? action.events.map(({ timestamp }) => ({ from: timestamp, to: timestamp }))
        : [{ from: at, to: clear ? endedAt : Date.now() }];
    for (const { from, to } of spans) {
      bounds.earliest = Math.min(bounds.earliest, from);
      bounds.firstAtMost = Math.min(bounds.firstAtMost, to);
      bounds.lastAtLeast = Math.max(bounds.lastAtLeast, from);
      bounds.latest = Math.max(bounds.latest, to);
    }
  }
  return bounds;
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
