import { expect } from 'vitest';
import type { Pipeline } from '../../pipeline.ts';
import type { EntityRecord, EventPage, EventRecord } from '../../records.ts';
import { type PosthogClient, posthogKeyOf } from './clients.ts';
import { COMPANY, ORDER, OTHER, STEPS, USER, VISITOR } from './steps.ts';

/** What user and organization have before. `old` is removed. */
const BEFORE = { kept: 'as it was', old: true };

const ORGANIZATION = `company:${COMPANY}`;

/** How many events the steps of a client become. */
export function eventsOf({ identifies }: PosthogClient): number {
  return STEPS.length - 1 + identifies.length;
}

/** Stores the properties that a client changes. */
export async function storeBefore(pipeline: Pick<Pipeline, 'submit'>, client: PosthogClient): Promise<void> {
  const key = posthogKeyOf(client);
  const responses = [
    await pipeline.submit({ foreignId: USER, properties: BEFORE }, { path: '/v1/public/users', key }),
    await pipeline.submit({ foreignUserGroupId: ORGANIZATION, properties: BEFORE }, { key }),
  ];
  expect(responses.map(({ status }) => status)).toEqual([202, 202]);
}

type Values = Readonly<Record<string, unknown>>;

/** Expects that query-api returns each event of a client once, with its content, and the properties that were set. */
export async function expectPosthogStored(pipeline: Pick<Pipeline, 'get'>, client: PosthogClient): Promise<void> {
  const key = posthogKeyOf(client);
  const get = async <Body>(path: string) => (await pipeline.get<Body>(path, key)).body;
  const { results } = await get<EventPage>('/events?limit=1000');
  const expected = expectedEvents(client);
  const byName = (events: readonly { event: string }[]) => events.toSorted((a, b) => (a.event < b.event ? -1 : 1));
  expect(byName(results)).toEqual(byName(expected).map((event) => expect.objectContaining(event)));
  expect(JSON.stringify(results)).not.toContain(key);

  const inBrowser = client.runsIn.platform === 'browser';
  const user = await get<EntityRecord>(`/users/${encodeURIComponent(USER)}`);
  // posthog-js sets once where a person came from.
  const { name, visits, address } = asSent(client, STEPS[1].set);
  const set = { kept: 'as it was', name, visits, address, via: 'ad', plan: 'pro', first_plan: 'free' };
  if (inBrowser) expect(user.properties).toMatchObject(set);
  else expect(user.properties).toEqual(set);
  expect(user.properties).not.toHaveProperty('old');
  expect(user.properties).not.toHaveProperty('nothing');
  const organization = await get<EntityRecord>(`/organizations/${ORGANIZATION}`);
  expect(organization.properties).toEqual({ ...BEFORE, ...STEPS[2].properties });
  const users = await get<{ results: { foreignId: string }[] }>(`/organizations/${ORGANIZATION}/users`);
  expect(users.results.map(({ foreignId }) => foreignId)).toEqual([USER]);
  for (const nobody of [VISITOR, OTHER, `$company_${COMPANY}`]) {
    expect((await pipeline.get(`/users/${nobody}`, key)).status).toBe(404);
  }
}

function expectedEvents(client: PosthogClient): ({ event: string } & Partial<EventRecord>)[] {
  const inBrowser = client.runsIn.platform === 'browser';
  // A page that has named its group sends it with every later event.
  const later = inBrowser ? ORGANIZATION : null;
  const ofUser = { type: 'track', userId: USER, anonymousId: null };
  const none = { userId: null, anonymousId: null };
  const [landed, , , order, plan] = STEPS;
  const [distinct_id, alias] = client.aliasOf === 'user' ? [USER, OTHER] : [OTHER, USER];
  return [
    { ...none, event: 'Landed', type: 'track', anonymousId: VISITOR, groupId: null, ...timeAndValues(landed) },
    ...client.identifies.map((event) => ({
      ...ofUser,
      ...{ event, groupId: null, type: event === 'identify' ? 'identify' : 'track' },
      anonymousId: client.namesVisitor ? VISITOR : null,
    })),
    { ...none, event: 'group', type: 'group', groupId: ORGANIZATION, traits: STEPS[2].properties },
    {
      ...ofUser,
      event: order.event,
      groupId: ORGANIZATION,
      ...timeAndValues({ ...order, properties: asSent(client, ORDER) }),
    },
    { ...ofUser, event: plan.event, groupId: later, ...timeAndValues(plan) },
    {
      ...{ ...none, event: 'alias', type: 'alias', groupId: later },
      properties: expect.objectContaining({ distinct_id, alias }),
    },
    { ...ofUser, event: 'Signed Out', groupId: later },
  ];
}

function timeAndValues({ timestamp, properties }: { timestamp: Date; properties: Values }): Partial<EventRecord> {
  return { timestamp: timestamp.toISOString(), properties: expect.objectContaining(properties) };
}

/** Returns values as the client sends them. Java leaves out what is `null`, in maps and lists. */
function asSent({ runsIn }: PosthogClient, values: Values): Values {
  return runsIn.platform === 'java' ? (withoutNull(values) as Values) : values;
}

function withoutNull(value: unknown): unknown {
  if (Array.isArray(value)) return value.filter((each) => each !== null).map(withoutNull);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).filter(([, each]) => each !== null);
  return Object.fromEntries(entries.map(([name, each]) => [name, withoutNull(each)]));
}
