import { holdsObject, type JsonMembers, jsonMembers, jsonObject } from '@sluice/submissions/reading/json-members';
import { callFormat } from './call-format.ts';
import { type ChangedEntity, callLine, msOf, timeOf } from './calls.ts';
import { type LineContent, type RefusedLine, readJsonObject, refused } from './format.ts';

type Row = Readonly<Record<string, unknown>>;

/** The columns with JSON, as text or as ClickHouse's type JSON. */
const JSON_COLUMNS = ['properties', 'traits', 'context'] as const;

/** The columns with identifiers, and the fields of a call. */
const IDENTIFIERS = {
  user_id: 'userId',
  group_id: 'groupId',
  anonymous_id: 'anonymousId',
  instance_id: 'instanceId',
} as const;

/** Rows of Trench's table `events`, as `SELECT * FROM events FORMAT JSONEachRow` prints them. */
export const trenchFormat = callFormat((bytes, number): LineContent => {
  const content = readJsonObject(bytes);
  if (content.kind !== 'object') return content;
  const row = content.value;
  if (typeof row['uuid'] !== 'string') return refused('has no uuid: is it a row of the table events?');
  const timestamp = timeOf({ happened: [msOf(row['timestamp'])], received: msOf(row['parsed_at']) });
  if (timestamp === undefined) return refused('has no usable timestamp, such as "2024-10-22 19:34:56.000000"');
  const json = jsonColumns(row, jsonMembers(bytes));
  if ('reason' in json) return json;
  const call = callOf(row, json);
  call.set('timestamp', JSON.stringify(new Date(timestamp)));
  return callLine(number, jsonObject(call), entityOf(row));
});

/** The JSON columns that are not empty. */
function jsonColumns(row: Row, raw: JsonMembers): JsonMembers | RefusedLine {
  const columns: JsonMembers = new Map();
  for (const name of JSON_COLUMNS) {
    const value = row[name] ?? '';
    if (value === '') continue;
    const text = typeof value === 'string' ? value : String(raw.get(name));
    if (!holdsObject(text)) return refused(`${name} is not a JSON object`);
    columns.set(name, text);
  }
  return columns;
}

function callOf(row: Row, json: JsonMembers): JsonMembers {
  const members: JsonMembers = new Map();
  const type = row['type'] || 'track';
  members.set('type', JSON.stringify(type));
  members.set('messageId', JSON.stringify(row['uuid']));
  const isPage = type === 'page' || type === 'screen';
  if (row['event'] !== undefined) members.set(isPage ? 'name' : 'event', JSON.stringify(row['event']));
  for (const [column, field] of Object.entries(IDENTIFIERS)) {
    if (row[column]) members.set(field, JSON.stringify(row[column]));
  }
  // Trench's client sends none for a person who is not identified. Each such event is of a person of its own.
  const hasSubject = ['user_id', 'group_id', 'anonymous_id'].some((column) => row[column]);
  if (!hasSubject) members.set('anonymousId', JSON.stringify(row['uuid']));
  for (const [name, text] of json) members.set(name, text);
  const traits = type === 'identify' || type === 'group' ? traitsOf(json) : undefined;
  if (traits !== undefined) members.set('traits', traits);
  return members;
}

/** Trench's client sends the traits of a user or organization as `properties.$set`. */
function traitsOf(json: JsonMembers): Buffer | string | undefined {
  const traits = json.get('traits');
  if (traits !== undefined && jsonMembers(Buffer.from(traits)).size > 0) return traits;
  const set = jsonMembers(Buffer.from(json.get('properties') ?? '{}')).get('$set');
  return set !== undefined && holdsObject(String(set)) ? set : undefined;
}

function entityOf({ type, user_id: userId, group_id: groupId }: Row): ChangedEntity | undefined {
  if (type === 'identify' && userId) return { kind: 'user', id: userId };
  return type === 'group' && groupId ? { kind: 'organization', id: groupId } : undefined;
}
