import { createHash } from 'node:crypto';
import { ROW_FORMAT } from '@sluice/shared/rows';
import { visitorOf } from '@sluice/shared/rows/deleted-person';
import { isMergeKey, mergedUserOf } from '@sluice/shared/rows/merged-user';
import type { KafkaMessage } from 'kafkajs';
import { isUuid } from './identifiers.ts';

/** The times that a row may have, in microseconds since 1970: from 2000 on, before 2100. */
const [RECEIVED_MIN, RECEIVED_MAX] = [946_684_800_000_000, 4_102_444_800_000_000];

export type Kind = 'events' | 'changes' | 'rejected';

/** A row of the log, as far as an audit looks at it. */
export interface LogRow {
  readonly kind: Kind;
  /** The row's index in its message, counted from 0. */
  readonly line: number;
  /** Empty where the row does not say. */
  readonly workspace: string;
  /** When it was accepted, in microseconds since 1970; where the row does not say, when Kafka took it. */
  readonly received: number;
  /** As a deletion names whose it is; empty: nobody's. */
  readonly person: string;
  /** The user who became `person`, where that is what the row says: a deletion of this one hides it as well. */
  readonly merged?: string;
  readonly event?: { readonly uuid: string; readonly ms: number; readonly isStamped: boolean };
  readonly change?: Change;
  /** The id of the dead letter that it is when it cannot be stored. */
  deadLetter(): string;
}

export interface Change {
  readonly entity: string;
  readonly id: string;
  readonly operation: 'seen' | 'set' | 'set_once' | 'remove' | 'delete' | 'link' | 'say';
  /** Of a visitor, its user. */
  readonly property: string;
}

/** Returns the rows of a message. A message of another format is one row, which is neither an event nor a change. */
export function rowsOf(message: KafkaMessage): LogRow[] {
  const { headers, value, timestamp } = message;
  const bytes = value ?? Buffer.alloc(0);
  const kind = String(headers?.['kind'] ?? '');
  const takenAt = Number(timestamp) * 1_000;
  if (String(headers?.['format'] ?? '') !== ROW_FORMAT || !isKind(kind)) {
    const deadLetter = () => deadLetterId(kind, bytes);
    return [
      { kind: isKind(kind) ? kind : 'events', line: 0, workspace: '', received: takenAt, person: '', deadLetter },
    ];
  }
  const rows: LogRow[] = [];
  for (let start = 0, line = 0; start < bytes.length; line += 1) {
    const feed = bytes.indexOf(0x0a, start);
    const end = feed < 0 ? bytes.length : feed;
    // ClickHouse ignores empty lines.
    if (end > start || kind === 'rejected') rows.push(rowOf(kind, line, bytes.subarray(start, end), takenAt));
    start = end + 1;
  }
  return rows;
}

function isKind(text: string): text is Kind {
  return text === 'events' || text === 'changes' || text === 'rejected';
}

function rowOf(kind: Kind, line: number, bytes: Buffer, takenAt: number): LogRow {
  const fields = parse(bytes);
  const time = fields[kind === 'changes' ? 'version' : 'received_at'];
  const isTime = typeof time === 'number' && time > RECEIVED_MIN && time < RECEIVED_MAX;
  const known = {
    ...{ kind, line, workspace: textOf(fields, 'workspace_id'), received: isTime ? time : takenAt },
    person: kind === 'changes' ? userOf(fields) : personOf(fields),
    ...mergedIn(fields),
    deadLetter: () => deadLetterId(kind, bytes),
  };
  // Of others only the dead letter is looked for.
  if (!isTime || known.workspace === '') return known;
  if (kind === 'changes') {
    const change = changeOf(fields);
    return change ? { ...known, change } : known;
  }
  const { uuid, timestamp: ms } = fields;
  if (kind === 'rejected' || !isUuid(uuid) || typeof ms !== 'number') return known;
  return { ...known, event: { uuid: uuid.toLowerCase(), ms, isStamped: fields['stamped'] === 1 } };
}

type Fields = Readonly<Record<string, unknown>>;

function parse(bytes: Buffer): Fields {
  try {
    const parsed: unknown = JSON.parse(bytes.toString());
    return typeof parsed === 'object' && parsed !== null ? (parsed as Fields) : {};
  } catch {
    return {};
  }
}

function textOf(fields: Fields, name: string): string {
  const value = fields[name];
  return typeof value === 'string' ? value : '';
}

/** As PERSON_SQL of an event. */
function personOf(fields: Fields): string {
  return textOf(fields, 'user_id') || visitorOf(textOf(fields, 'anonymous_id'));
}

function mergedIn(fields: Fields): Pick<LogRow, 'merged'> {
  const id = textOf(fields, 'id');
  return fields['kind'] === 'visitor' && isMergeKey(id) ? { merged: mergedUserOf(id) } : {};
}

function userOf(fields: Fields): string {
  if (fields['kind'] === 'visitor') return textOf(fields, 'user_id') || (mergedIn(fields).merged ?? '');
  return fields['kind'] === 'user' ? textOf(fields, 'id') : '';
}

const OPERATIONS: readonly unknown[] = ['seen', 'set', 'set_once', 'remove', 'delete'];
const OPERATIONS_OF_VISITORS: readonly unknown[] = ['link', 'say'];

function changeOf(fields: Fields): Change | undefined {
  const { kind: entity, operation } = fields;
  const id = textOf(fields, 'id');
  const isOfVisitor = entity === 'visitor';
  if ((entity !== 'user' && entity !== 'organization' && !isOfVisitor) || id === '') return undefined;
  if (!(isOfVisitor ? OPERATIONS_OF_VISITORS : OPERATIONS).includes(operation)) return undefined;
  const property = textOf(fields, isOfVisitor ? 'user_id' : 'property');
  return { entity, id, operation: operation as Change['operation'], property };
}

/** The name of a dead letter follows from its row. The time of a rejected call does not belong to it. */
function deadLetterId(kind: string, row: Buffer): string {
  const end = kind === 'rejected' ? row.lastIndexOf(',"received_at":') : -1;
  const identity = end < 0 ? row : row.subarray(0, end);
  return createHash('sha256').update(kind).update('\0').update(identity).digest('hex').slice(0, 32);
}
