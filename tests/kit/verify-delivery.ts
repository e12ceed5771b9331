import { deepStrictEqual } from 'node:assert/strict';
import { readClickHouse } from './clickhouse.ts';
import { type ExpectedEvent, expectedEvents } from './expected-events.ts';
import type { Tally } from './load.ts';
import type { Pipeline } from './pipeline.ts';
import type { EventPage } from './records.ts';
import { ofEntities, wrongEntities } from './verify-entities.ts';
import { wrongHours } from './verify-hours.ts';
import { wrongMemberships } from './verify-memberships.ts';

/** What the clients of a load were told, compared with what is stored and served. A list is empty when all is well. */
export interface Delivery {
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
  /** Responses other than 202 and those that allow a retry. */
  readonly refused: readonly string[];
}

/** The rows of an event, by the key in its properties. */
interface StoredEvent {
  readonly key: string;
  readonly uuids: readonly string[];
  /** The timestamps of the first and the last row, in milliseconds since 1970. */
  readonly first: number;
  readonly last: number;
  readonly userId: string;
  readonly groupId: string;
  readonly rows: number;
  readonly visible: number;
  /** Rows whose name is not the one that was sent. */
  readonly altered: number;
}

/**
 * Compares a load that has ended with what is stored and served, once the writers have committed everything.
 *
 * @param cutOff the keys of events that Kafka has lost before they were stored: they may be missing
 */
export async function verifyDelivery(
  pipeline: Pick<Pipeline, 'database' | 'get' | 'drained'>,
  clickhouseUrl: string,
  tally: Tally,
  cutOff: ReadonlySet<string> = new Set(),
): Promise<Delivery> {
  const { database } = pipeline;
  const expected = expectedEvents(tally, cutOff);
  await pipeline.drained();
  const stored = await readEvents(database, clickhouseUrl, tally.name);
  const visible = stored.filter((event) => event.visible > 0);
  const visibleKeys = new Set(visible.map(({ key }) => key));
  const users = ofEntities(tally.operations, 'user');
  const organizations = ofEntities(tally.operations, 'organization');
  // Which of several users an event shows depends on what was stored first.
  const several = [...expected].filter(([, { users: ofEvent }]) => ofEvent.size > 1).map(([key]) => key);
  const uncertain = cutOff.union(new Set(several));
  const wrong = [
    ...wrongEvents(stored, expected),
    ...(await unknownEntities(database, clickhouseUrl, tally.name, [...users.keys(), ...organizations.keys()])),
    ...(await wrongEntities(pipeline, '/users', users, uncertain)),
    ...(await wrongEntities(pipeline, '/organizations', organizations, uncertain)),
    ...(await wrongTotals(pipeline, visible, [...organizations.keys()])),
    ...(await wrongMemberships(pipeline, visible, tally.operations)),
    ...(await wrongHours(database, clickhouseUrl)),
  ];
  return {
    accepted: tally.accepted.size,
    unknown: [...expected.values()].filter(({ acknowledged }) => !acknowledged).length,
    required: [...expected.values()].filter(({ must }) => must).length,
    visible: visible.length,
    entities: users.size + organizations.size,
    lost: [...expected].filter(([key, { must }]) => must && !visibleKeys.has(key)).map(([key]) => key),
    doubled: stored.filter(isDoubled(expected)).map(({ key }) => key),
    invented: [...visibleKeys].filter((key) => !expected.get(key)?.may),
    wrong,
    deadLetters: await countDeadLetters(database, clickhouseUrl),
    refused: tally.refused,
  };
}

/** What is wrong with a delivery. */
export function faultsOf({ lost, doubled, invented, wrong, deadLetters, refused }: Delivery) {
  return { lost, doubled, invented, wrong, deadLetters, refused };
}

/** {@link faultsOf} a delivery in which nothing was lost, doubled, invented or refused, and every entity is right. */
export const NO_FAULTS = { lost: [], doubled: [], invented: [], wrong: [], deadLetters: 0, refused: [] };

/**
 * Checks that every accepted event is stored once and no other is, and that users and organizations are as they should
 * be.
 *
 * @throws {AssertionError} with what is wrong
 */
export async function expectExactlyOnce(
  pipeline: Pick<Pipeline, 'database' | 'get' | 'drained'>,
  clickhouseUrl: string,
  tally: Tally,
): Promise<void> {
  const delivery = await verifyDelivery(pipeline, clickhouseUrl, tally);
  deepStrictEqual(faultsOf(delivery), NO_FAULTS);
  if (delivery.required === 0) throw new Error('no accepted event of the load has to be stored');
}

/** Returns the keys of a load's events that are visible. */
export async function readVisibleKeys(
  database: string,
  clickhouseUrl: string,
  load: string,
): Promise<ReadonlySet<string>> {
  const stored = await readEvents(database, clickhouseUrl, load);
  return new Set(stored.filter(({ visible }) => visible > 0).map(({ key }) => key));
}

async function readEvents(database: string, clickhouseUrl: string, load: string): Promise<StoredEvent[]> {
  const sql = `
    WITH deletions AS (
      SELECT user_id, max(version) AS deleted FROM user_deletions WHERE workspace_id = 'test' GROUP BY user_id
    )
    SELECT
      JSONExtractString(properties, 'key') AS key,
      groupUniqArray(toString(uuid)) AS uuids,
      toUnixTimestamp64Milli(min(timestamp)) AS first,
      toUnixTimestamp64Milli(max(timestamp)) AS last,
      if(visible > 0, anyIf(user_id, toUnixTimestamp64Micro(received_at) > deleted), any(user_id)) AS userId,
      any(group_id) AS groupId,
      count() AS rows,
      countIf(toUnixTimestamp64Micro(received_at) > deleted) AS visible,
      countIf(event != 'load') AS altered
    FROM events
    LEFT JOIN deletions USING (user_id)
    WHERE workspace_id = 'test' AND startsWith(group_id, concat({load:String}, '-'))
    GROUP BY key
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
    const sent = expected.get(event.key);
    const fits =
      event.altered === 0 &&
      (!sent ||
        ((event.visible > 0 && !sent.shared ? sent.user === event.userId : sent.users.has(event.userId)) &&
          sent.group === event.groupId &&
          event.uuids.every((uuid) => uuid === (sent.uuid ?? uuid)) &&
          event.first >= sent.from &&
          event.last <= sent.to));
    return fits ? [] : [`${event.key} is not what was sent`];
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
  return (event) => event.visible > 1 || (event.rows > 1 && !expected.get(event.key)?.deleted);
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
