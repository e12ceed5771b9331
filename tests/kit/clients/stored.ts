import { expect } from 'vitest';
import type { Pipeline } from '../pipeline.ts';
import type { EntityRecord, EventPage, EventRecord } from '../records.ts';
import { ORGANIZATION, STRANGER, type TestCall, USER } from './calls.ts';
import { keyOf, PAGE, type RecordedProgram, type ThirdPartyClient } from './clients.ts';

type Values = Readonly<Record<string, unknown>>;

const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
const UUID = expect.stringMatching(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);

/** What user and organization have before a client makes its calls. `trial` and `plan` are removed by the calls. */
const BEFORE = { kept: 'as it was', trial: true, plan: 'free' };

/** Stores the properties that the calls of a client change. */
export async function storeEntities(pipeline: Pick<Pipeline, 'submit'>, client: ThirdPartyClient): Promise<void> {
  const key = keyOf(client);
  const responses = [
    await pipeline.submit({ foreignId: USER, properties: BEFORE }, { path: '/v1/public/users', key }),
    await pipeline.submit({ foreignUserGroupId: ORGANIZATION, properties: BEFORE }, { key }),
  ];
  expect(responses.map(({ status }) => status)).toEqual([202, 202]);
}

/**
 * Expects that query-api returns each call of a client once with its exact content, the properties that they set, and the
 * membership. All must be stored.
 *
 * @returns the events, in the order of the calls
 */
export async function expectStored(pipeline: Pick<Pipeline, 'get'>, client: ThirdPartyClient): Promise<EventRecord[]> {
  const key = keyOf(client);
  const get = async <Body>(path: string) => (await pipeline.get<Body>(path, key)).body;
  const { results } = await get<EventPage>(
    '/events?orderByField=timestamp&orderByDirection=ASC&limit=1000&identity=raw',
  );
  expect(results).toEqual(client.calls.map((call) => expectedEvent(client, call)));

  const user = await get<EntityRecord>(`/users/${encodeURIComponent(USER)}`);
  expect(user.properties).toEqual(propertiesAfter(client, 'identify'));
  const organization = await get<EntityRecord>(`/organizations/${ORGANIZATION}`);
  expect(organization.properties).toEqual(propertiesAfter(client, 'group'));

  const joinedAt = client.calls.find(({ type }) => type === 'group')?.timestamp?.toISOString();
  const seen = { firstSeenAt: joinedAt, lastSeenAt: joinedAt };
  const organizations = await get<{ results: object[] }>(`/users/${encodeURIComponent(USER)}/organizations`);
  expect(organizations.results).toEqual([{ foreignUserGroupId: ORGANIZATION, ...seen }]);
  const users = await get<{ results: object[] }>(`/organizations/${ORGANIZATION}/users`);
  expect(users.results).toEqual([{ foreignId: USER, ...seen }]);
  return [...results];
}

function expectedEvent(client: ThirdPartyClient, call: TestCall): Values {
  const inBrowser = client.runsIn.platform === 'browser';
  const { type, event, name, traits, timestamp } = call;
  return {
    uuid: UUID,
    type,
    event: event ?? name ?? type,
    // A browser's client knows both since the first call.
    userId: inBrowser ? USER : (call.userId ?? null),
    anonymousId: inBrowser ? STRANGER : (call.anonymousId ?? null),
    groupId: call.groupId ?? null,
    instanceId: null,
    properties: expectedProperties(client, call),
    context: expectedContext(client, call),
    traits: asSent(client, traits ?? {}),
    timestamp: timestamp?.toISOString() ?? TIME,
    receivedAt: TIME,
  };
}

function expectedProperties(client: ThirdPartyClient, call: TestCall): Values {
  const { type, name, category, properties, previousId } = call;
  return {
    ...(type === 'page' && addedToPage(client)),
    ...asSent(client, properties ?? {}),
    ...(name && { name }),
    ...(category && { category }),
    ...(previousId && { previousId }),
  };
}

/** What a client in a browser adds to the properties of a page. */
function addedToPage({ runsIn }: ThirdPartyClient): Values {
  if (runsIn.platform !== 'browser') return {};
  const { path, search, title, url } = PAGE;
  const common = { path, search, title, url };
  if (runsIn.api === 'segment') return { ...common, referrer: '' };
  const referrers = { referrer: '$direct', initial_referrer: '$direct' };
  return { ...common, ...referrers, referring_domain: '', initial_referring_domain: '', tab_url: url };
}

function expectedContext(client: ThirdPartyClient, { type, traits = {}, properties }: TestCall): unknown {
  const { library, runsIn } = client;
  if (runsIn.platform === 'browser') {
    const { path, url, title } = PAGE;
    // The address in the properties of a page is that of its context, too.
    const page = { path, title, url: type === 'page' ? properties?.['url'] : url };
    return expect.objectContaining({
      library: expect.objectContaining(library),
      page: expect.objectContaining(page),
    });
  }
  // Those of Segment for Java and Go have a context for all calls of a request.
  const sendsUuids = library.name !== '@segment/analytics-node';
  const addsTraits = ['rudder-sdk-node', 'rudder-python', 'rudder-ruby'].some((family) =>
    client.name.startsWith(family),
  );
  return {
    library,
    ...(!sendsUuids && { messageId: expect.stringMatching(/^node-next-\d+-/) }),
    ...(client.name.startsWith('segment-java') && { instanceId: UUID }),
    ...(addsTraits && type === 'identify' && { traits: asSent(client, traits) }),
  };
}

function propertiesAfter(client: ThirdPartyClient, type: 'identify' | 'group'): Values {
  const { traits = {} } = client.calls.find((call) => call.type === type) ?? {};
  const merged = { ...BEFORE, ...asSent(client, traits) };
  return Object.fromEntries(Object.entries(merged).filter(([, value]) => value !== null));
}

/**
 * Returns values as the client sends them. Python and PHP write a date with its offset, Go without milliseconds that are 0.
 * PHP has no empty map. Java leaves out what is `null` in maps, analytics-js at the top.
 */
function asSent({ runsIn }: ThirdPartyClient, values: Values): Values {
  const text = JSON.stringify(values);
  if (runsIn.platform === 'python') return JSON.parse(text.replaceAll('.000Z"', '+00:00"')) as Values;
  if (runsIn.platform === 'java') return withoutNull(JSON.parse(text)) as Values;
  if (runsIn.platform === 'recorded') return JSON.parse(WRITTEN_BY[runsIn.language](text)) as Values;
  const sent = JSON.parse(text) as Values;
  if (runsIn.platform === 'node' || runsIn.api === 'segment') return sent;
  return Object.fromEntries(Object.entries(sent).filter(([, value]) => value !== null));
}

const WRITTEN_BY: Readonly<Record<RecordedProgram['language'], (json: string) => string>> = {
  go: (json) => json.replaceAll('.000Z"', 'Z"'),
  php: (json) => json.replaceAll('.000Z"', '+00:00"').replaceAll(':{}', ':[]'),
  ruby: (json) => json,
};

/** Leaves out what is `null` in maps, and keeps it in lists. */
function withoutNull(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNull);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).filter(([, each]) => each !== null);
  return Object.fromEntries(entries.map(([name, each]) => [name, withoutNull(each)]));
}
