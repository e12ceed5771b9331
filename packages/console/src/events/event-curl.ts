import type { Event } from '../base/base.ts';

/** The placeholder of the key: a key with the scope `ingest` is another one than the console's. */
const KEY = 'YOUR_KEY';

/** Returns the shell command that sends an event to ingest-api, with its uuid: while it is stored, that repeats it. */
export function curlOf(event: Event, ingestUrl: string): string {
  const { path, body } = submissionOf(event);
  const headers = `-H 'Authorization: Bearer ${KEY}' -H 'Content-Type: application/json'`;
  return `curl -X POST ${quoted(`${ingestUrl}${path}`)} \\\n  ${headers} \\\n  -d ${quoted(JSON.stringify(body))}`;
}

function submissionOf(event: Event): { readonly path: string; readonly body: unknown } {
  const { uuid, type, timestamp, properties, context, traits, userId, groupId, anonymousId, instanceId } = event;
  // Other types, and events of nobody in particular, are calls.
  if (type !== 'track' || (userId === null && groupId === null)) {
    const ids = defined({ userId, groupId, anonymousId });
    const named = type === 'track' ? { event: event.event } : { name: event.event };
    const call = { type, ...named, messageId: uuid, timestamp, ...ids, properties, context, traits };
    return { path: '/v1/batch', body: { batch: [call] } };
  }
  const name = event.event;
  const ids = defined({ anonymousId, instanceId });
  const events = [{ event: name, uuid, timestamp, ...ids, properties, context, traits }];
  if (groupId === null) return { path: '/v1/public/users', body: { foreignId: userId, events } };
  const user = defined({ foreignUserId: userId });
  return { path: '/v1/public/userGroups', body: { foreignUserGroupId: groupId, ...user, events } };
}

function defined(values: Readonly<Record<string, string | null>>): Record<string, string> {
  return Object.fromEntries(Object.entries(values).filter((entry): entry is [string, string] => entry[1] !== null));
}

/** Quotes a text for a POSIX shell. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
