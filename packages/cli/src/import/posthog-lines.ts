import { KEY_PROPERTIES } from '@sluice/submissions/calls/posthog/posthog-properties';
import { holdsObject, type JsonMembers, jsonMembers, jsonObject } from '@sluice/submissions/reading/json-members';
import { callFormat } from './call-format.ts';
import { type ChangedEntity, callLine, msOf, timeOf } from './calls.ts';
import { type LineContent, readJsonObject, refused } from './format.ts';

type Row = Readonly<Record<string, unknown>>;

const PATH = '/batch/';

/** What is sent of a line besides its time and its properties. */
const FIELDS = ['uuid', 'event', 'distinct_id'] as const;

/** The properties that change the user of an event. PostHog's export has them in the event's own, wherever they were sent. */
const USER_CHANGES = ['$set', '$set_once', '$unset'] as const;

/** Events as PostHog's batch exports write them as JSON lines: the columns of its table of events. */
export const posthogFormat = callFormat((bytes, number): LineContent => {
  const content = readJsonObject(bytes);
  if (content.kind !== 'object') return content;
  const row = content.value;
  if (typeof row['uuid'] !== 'string') return refused('has no uuid: is it a line of an export of events?');
  const timestamp = timeOf({ happened: [msOf(row['timestamp'])], received: msOf(row['created_at']) });
  if (timestamp === undefined) return refused('has no usable timestamp, such as "2025-03-01T12:00:00.000000+00:00"');
  const members = jsonMembers(bytes);
  // As an object, or as its text.
  const properties = propertiesOf(row, members);
  if (properties === undefined) return refused('properties is not a JSON object');
  const event: JsonMembers = new Map();
  for (const field of FIELDS) event.set(field, members.get(field) ?? 'null');
  event.set('timestamp', JSON.stringify(new Date(timestamp)));
  const kept = jsonMembers(Buffer.from(properties));
  // The API key of PostHog, which posthog-js sends in each event. It would be taken for the key of the request.
  const hadKey = KEY_PROPERTIES.map((name) => kept.delete(name)).includes(true);
  event.set('properties', hadKey ? jsonObject(kept) : properties);
  return callLine(number, jsonObject(event), entityOf(row, kept), PATH);
});

function propertiesOf({ properties = null }: Row, members: JsonMembers): string | undefined {
  if (properties === null || properties === '') return '{}';
  const text = typeof properties === 'string' ? properties : String(members.get('properties'));
  return holdsObject(text) ? text : undefined;
}

function entityOf({ event, distinct_id: user }: Row, properties: JsonMembers): ChangedEntity | undefined {
  if (event === '$groupidentify') {
    return { kind: 'organization', id: `${properties.get('$group_type')}:${properties.get('$group_key')}` };
  }
  return USER_CHANGES.some((name) => properties.has(name)) ? { kind: 'user', id: user } : undefined;
}
