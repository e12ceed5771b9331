import { EVENT_IDENTIFIERS } from '@sluice/shared/rows/event-identifiers';
import { type JsonMembers, jsonMembers, jsonObject } from '@sluice/submissions/reading/json-members';
import { callFormat } from './call-format.ts';
import { type ChangedEntity, callLine } from './calls.ts';
import { type Format, type LineContent, type LineToSend, readJsonObject, refused } from './format.ts';
import { nativeFormat } from './submission-lines.ts';

type EventRecord = Readonly<Record<string, unknown>>;

const USERS_PATH = '/v1/public/users';
const ORGANIZATIONS_PATH = '/v1/public/userGroups';

/** What the last line of a file may count. */
const COUNTED = ['events', 'users', 'organizations'] as const;

/** Fields that a call and an event of a submission have by the same names. */
const COMMON_FIELDS = [
  ...EVENT_IDENTIFIERS.map(({ field }) => field),
  ...['properties', 'context', 'traits', 'timestamp'],
];

const calls = callFormat(readRecord);

/**
 * Events as `GET /events/export` writes them. Each becomes a call that is stored as the same event. An event whose context
 * names an organization that is not its own becomes a submission: a call would get that organization. So do users and
 * organizations, as their lists have them: a submission of their properties.
 */
export const exportFormat: Format = {
  ...calls,
  unit: 'records',
  hasTrailer: true,
  createGatherer() {
    const gatherer = calls.createGatherer();
    return {
      add: (line) =>
        isSubmission(line) ? [{ lines: [line], orderKey: undefined, bytes: line.body.length }] : gatherer.add(line),
      rest: () => gatherer.rest(),
    };
  },
  requestOf: (lines) => (isSubmission(lines[0]) ? nativeFormat.requestOf(lines) : calls.requestOf(lines)),
  rejectedIn: (response) => (response.startsWith('{"status":"accepted"') ? new Map() : calls.rejectedIn(response)),
};

function isSubmission({ path }: LineToSend): boolean {
  return path === USERS_PATH || path === ORGANIZATIONS_PATH;
}

function readRecord(bytes: Buffer, number: number): LineContent {
  const content = readJsonObject(bytes);
  if (content.kind !== 'object') return content;
  const record = content.value;
  const counted = COUNTED.map((name) => record[name]).find((value) => typeof value === 'number');
  if (record['complete'] === true && counted !== undefined) return { kind: 'trailer', lines: counted };
  if (typeof record['foreignId'] === 'string') return entityLine(number, USERS_PATH, 'foreignId', bytes);
  if (typeof record['foreignUserGroupId'] === 'string') {
    return entityLine(number, ORGANIZATIONS_PATH, 'foreignUserGroupId', bytes);
  }
  if (typeof record['uuid'] !== 'string' || typeof record['timestamp'] !== 'string') {
    return refused('has no uuid and timestamp: is it a record of an export?');
  }
  const members = jsonMembers(bytes);
  if (record['type'] === 'track' && namesOtherOrganization(record)) return submissionLine(number, members);
  return callLine(number, callOf(record, members), entityOf(record));
}

function callOf(record: EventRecord, members: JsonMembers): Buffer {
  const { type, event } = record;
  const call = picked(members, ['type', 'userId', 'groupId', ...COMMON_FIELDS]);
  call.set('messageId', members.get('uuid') as Buffer);
  // A page without a name is an event named after its type.
  const isNamed = (type === 'page' || type === 'screen') && event !== type;
  if (type === 'track') call.set('event', members.get('event') ?? 'null');
  else if (isNamed) call.set('name', members.get('event') ?? 'null');
  const hasSubject = ['userId', 'groupId', 'anonymousId'].some((field) => record[field]);
  const previousId = (record['properties'] as EventRecord | undefined)?.['previousId'];
  if (!hasSubject && previousId !== undefined) call.set('previousId', JSON.stringify(previousId));
  return jsonObject(call);
}

function submissionLine(number: number, members: JsonMembers): LineToSend {
  const event = picked(members, ['uuid', 'event', ...COMMON_FIELDS]);
  const body = jsonObject(
    new Map([
      ['foreignId', members.get('userId') ?? 'null'],
      ['events', Buffer.concat([Buffer.from('['), jsonObject(event), Buffer.from(']')])],
    ]),
  );
  return {
    ...{ kind: 'line', number, path: USERS_PATH, body, events: 1 },
    ...{ orderKey: undefined, idempotencyKey: undefined },
  };
}

/** The properties of a user or an organization. When it was seen is not sent: it follows from the events. */
function entityLine(number: number, path: string, idName: string, bytes: Buffer): LineToSend {
  return {
    ...{ kind: 'line', number, path, body: jsonObject(picked(jsonMembers(bytes), [idName, 'properties'])), events: 0 },
    ...{ orderKey: undefined, idempotencyKey: undefined },
  };
}

function namesOtherOrganization({ userId, groupId, context }: EventRecord): boolean {
  return Boolean(userId) && !groupId && Boolean((context as EventRecord | null | undefined)?.['groupId']);
}

function picked(members: JsonMembers, fields: readonly string[]): JsonMembers {
  return new Map(fields.flatMap((field) => (members.has(field) ? [[field, members.get(field) as Buffer]] : [])));
}

function entityOf({ type, userId, groupId }: EventRecord): ChangedEntity | undefined {
  if (type === 'identify' && userId) return { kind: 'user', id: userId };
  return type === 'group' && groupId ? { kind: 'organization', id: groupId } : undefined;
}
