import type { BenchDatabase } from '../processes/database.ts';

/** Over how many days the events are spread. */
export const LINKED_DAYS = 90;

/** How many events a person has, in three visits. It signs in at the beginning of the last one: events before are of the visitor alone. */
export type EventsPerPerson = 3 | 10;

const EVENTS_OF_VISIT = { 3: 1, 10: 4 } as const satisfies Record<EventsPerPerson, number>;

const VISITS = 3;

/** How many events of a person name no user. */
export function nameless(eventsPerPerson: EventsPerPerson): number {
  return EVENTS_OF_VISIT[eventsPerPerson] * (VISITS - 1);
}

/** Whose page is read. */
export const LINKED_USER = 'user-4711';

export interface LinkedWorkspace {
  readonly workspace: string;
  readonly events: number;
  readonly eventsPerPerson: EventsPerPerson;
  /** The first events of a person name a visitor, who is linked to the user or not, or the user as well. */
  readonly firstEvents: 'linked' | 'of strangers' | 'of users';
}

/** Stores the events of persons who visit twice, and sign in at the third time, each with a visitor of its own. */
export async function fillLinked(
  { client }: BenchDatabase,
  { workspace, events, eventsPerPerson, firstEvents }: LinkedWorkspace,
): Promise<void> {
  const ofVisit = EVENTS_OF_VISIT[eventsPerPerson];
  const query_params = {
    ...{ workspace, rows: events, persons: Math.ceil(events / eventsPerPerson), days: LINKED_DAYS, until: Date.now() },
    ...{ ofVisit, nameless: firstEvents === 'of users' ? 0 : nameless(eventsPerPerson) },
  };
  await client.command({ query: FILL_EVENTS, query_params });
  if (firstEvents === 'linked') await client.command({ query: FILL_LINKS, query_params });
  for (const table of ['events', 'identity_links']) await client.command({ query: `OPTIMIZE TABLE ${table}` });
}

/** The text first: a hash of a number depends on its type as well. */
const VISITOR = 'toString(reinterpretAsUUID(sipHash128(toString(person))))';

const FILL_EVENTS = `
INSERT INTO events (workspace_id, timestamp, uuid, event, user_id, group_id, anonymous_id, properties, context, received_at)
WITH
  number % {persons:UInt32} AS person,
  intDiv(number, {persons:UInt32}) AS place,
  intDiv(place, {ofVisit:UInt8}) AS visit,
  -- An event of a visit is half a minute after the one before.
  fromUnixTimestamp64Milli(
    {until:Int64} - toInt64((1 - (visit + sipHash64(person, visit) / pow(2, 64)) / ${VISITS}) * {days:UInt32} * 86400000)
      - ({ofVisit:UInt8} - 1 - place % {ofVisit:UInt8}) * 30000,
    'UTC'
  ) AS at
SELECT
  {workspace:String},
  at,
  generateUUIDv7(),
  if(visit = 2, 'signed_in', ['page_viewed', 'search'][place % 2 + 1]),
  if(place >= {nameless:UInt8}, concat('user-', toString(person)), ''),
  concat('org-', toString(person % 5000)),
  ${VISITOR},
  concat(
    '{"url":"https://app.example.com/teams/', toString(person % 500), '/projects/', toString(rand(number) % 20000),
    '?tab=activity&ref=email","title":"Quarterly planning · Team ', toString(person % 500), '","sessionId":"',
    lower(hex(MD5(toString(person)))), '","plan":"business","seats":', toString(rand(number + 1) % 500),
    ',"device":{"os":"Linux","browser":"Firefox ', toString(130 + person % 12), '.0","width":1920}}'
  ),
  '{"locale":"en-GB","library":{"name":"sluice-js","version":"1.4.2"}}',
  at
FROM numbers({rows:UInt64})
`;

const FILL_LINKS = `
INSERT INTO identity_links (workspace_id, anonymous_id, user_id, version, said)
WITH number AS person
SELECT {workspace:String}, ${VISITOR}, concat('user-', toString(person)), 1700000000000000 + person, 0
FROM numbers({persons:UInt32})
`;
