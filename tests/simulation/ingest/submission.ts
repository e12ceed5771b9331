import type { Action, SentEvent } from '../../kit/load.ts';
import type { HttpRequest } from './ingest-place.ts';

/** A request of a client, which it repeats until it is accepted, and what has to be in Kafka then. */
export interface Submission {
  /** Tells it from all others. */
  readonly id: string;
  readonly workspace: string;
  readonly actions: readonly Action[];
  /** Names of calls in it that cannot be taken, by their positions. */
  readonly rejected: ReadonlyMap<number, string>;
  /** It has a row that is larger than what Kafka takes. */
  readonly isTooLarge: boolean;
  readonly request: HttpRequest;
}

/** The user of a deletion, if a submission is one. */
export function deletedUser({ actions }: Submission): string | undefined {
  const [action] = actions;
  return action?.kind === 'delete' ? action.user : undefined;
}

export interface EventsAction extends Extract<Action, { readonly kind: 'events' }> {
  /** What fills the events, in bytes. */
  readonly fill: number;
}

/** Returns the request of events, with a property of their organization if one is set at the same time. */
export function eventsRequest(action: EventsAction, property?: Action & { readonly kind: 'set' }): HttpRequest {
  const { user, group, events, idempotencyKey, fill } = action;
  const body = {
    foreignUserGroupId: group,
    ...(user !== '' && { foreignUserId: user }),
    events: events.map(({ key, uuid, timestamp }) => ({
      event: 'load',
      ...(uuid !== undefined && { uuid }),
      ...(timestamp !== undefined && { timestamp: new Date(timestamp).toISOString() }),
      properties: { key, fill: 'x'.repeat(fill) },
    })),
    ...(property && { properties: { [property.property]: property.value } }),
  };
  return post('/v1/public/userGroups', body, idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey });
}

/** What stands for a time that nobody can read: the event is stamped. */
const UNREADABLE = 'yesterday';

const timeOf = ({ timestamp }: SentEvent) => (timestamp === undefined ? UNREADABLE : new Date(timestamp).toISOString());

/**
 * Returns the request of a batch of calls: events, and calls that cannot be taken. Of PHP's clients there are `[]` for empty
 * objects, and of some the organization is in the context.
 */
export function callsRequest({ user, group, events, fill }: EventsAction, bad: readonly string[]): HttpRequest {
  const isPhp = events.length % 2 === 0;
  const batch = [
    ...events.map((event) => ({
      type: 'track',
      event: 'load',
      messageId: event.uuid,
      timestamp: timeOf(event),
      ...(user === '' ? { anonymousId: 'a' } : { userId: user }),
      ...(isPhp ? { groupId: group, context: [], traits: [] } : { context: { groupId: group } }),
      properties: { key: event.key, fill: 'x'.repeat(fill) },
    })),
    ...bad.map((name) => ({ type: 'nonsense', messageId: name, ...(user !== '' && { userId: user }) })),
  ];
  return post('/v1/batch', { batch });
}

/** Returns the same in the dialect of PostHog's clients, in which a person can be in several groups. */
export function posthogRequest(
  { user, group, events, fill }: EventsAction,
  bad: readonly string[],
  key: string,
): HttpRequest {
  const [type = '', name = ''] = group.split(':');
  const isNew = events.length % 2 === 0;
  const distinctId = isNew ? 'distinct_id' : '$distinct_id';
  const batch = [
    ...events.map((event) => ({
      event: 'load',
      uuid: event.uuid,
      timestamp: timeOf(event),
      [distinctId]: user === '' ? 'nobody' : user,
      properties: {
        ...{ key: event.key, fill: 'x'.repeat(fill), $groups: { [type]: name, team: 'a' } },
        ...(user === '' && { $process_person_profile: false }),
      },
    })),
    // It has no name.
    ...bad.map((messageId) => ({ messageId, ...(user !== '' && { distinct_id: user }), properties: {} })),
  ];
  return post('/batch/', { api_key: key, batch });
}

/** Returns the request that sets a property where nothing is set. */
export function setOnceRequest(
  { user, property, value, uuid }: Action & { readonly kind: 'set-once' },
  key: string,
): HttpRequest {
  const properties = { key: uuid, $set_once: { [property]: value } };
  return post('/batch/', { api_key: key, batch: [{ event: '$set', distinct_id: user, uuid, properties }] });
}

/** @param before what came until then is deleted: the time of the first attempt, where that is known */
export function deletionRequest(user: string, before?: string): HttpRequest {
  const time = before === undefined ? '' : `&before=${encodeURIComponent(before)}`;
  return { method: 'DELETE', url: `/v1/users?foreignId=${encodeURIComponent(user)}${time}`, headers: {} };
}

export function setRequest({ entity, id, property, value }: Action & { readonly kind: 'set' }): HttpRequest {
  const properties = { [property]: value };
  return entity === 'user'
    ? post('/v1/public/users', { foreignId: id, properties })
    : post('/v1/public/userGroups', { foreignUserGroupId: id, properties });
}

export function joinRequest({ user, group }: Action & { readonly kind: 'join' }): HttpRequest {
  return post('/v1/public/userGroups', { foreignUserGroupId: group, foreignUserId: user });
}

function post(url: string, body: object, headers: Readonly<Record<string, string>> = {}): HttpRequest {
  const payload = JSON.stringify(body);
  return { method: 'POST', url, headers: { ...headers, 'content-type': 'application/json' }, payload };
}
