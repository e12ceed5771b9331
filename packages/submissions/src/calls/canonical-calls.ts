import { EVENT_IDENTIFIERS, type EventIdentifier } from '@sluice/shared/rows';
import { NOT_CANONICAL } from '../reading/canonical-json.ts';
import {
  type CanonicalLimits,
  CanonicalReader,
  fieldsOf,
  TIMESTAMP_LENGTH,
  UUID_LENGTH,
} from '../reading/canonical-reader.ts';
import { EVENT_NAME_LENGTH_MAX, IDENTIFIER_LENGTH_MAX, TIMESTAMP_MS_MIN } from '../reading/submission-limits.ts';
import { type Call, MESSAGE_ID_LENGTH_MAX } from './call.ts';

const NAMES = [
  'type',
  'event',
  'userId',
  'groupId',
  'messageId',
  'timestamp',
  'properties',
  'context',
  'traits',
] as const;

/** A call with one of these is parsed. */
const PARSED_NAMES = ['previousId', 'writeKey'] as const;

const FIELDS = fieldsOf([...NAMES, ...PARSED_NAMES, ...EVENT_IDENTIFIERS.map(({ field }) => field)]);

type FieldName = (typeof NAMES)[number] | (typeof PARSED_NAMES)[number] | EventIdentifier;

type Draft = { -readonly [Name in keyof Call]: Call[Name] };

const TYPE_BIT = [...FIELDS.values()].flat().find(({ field }) => field === 'type')?.bit ?? 0;

const TRACK = Buffer.from('"track"');

/**
 * Reads canonical track calls that have a timestamp. Any other call, and any that is not valid, is left to call-parser.ts.
 */
export class CanonicalCalls extends CanonicalReader<Draft, FieldName> {
  constructor(body: Buffer, limits: CanonicalLimits) {
    super(body, FIELDS, limits);
  }

  protected create(): Draft {
    return { ...EMPTY_CALL };
  }

  /** A field that is not stored. */
  protected pass(at: number): number {
    return this.passAny(at);
  }

  protected finish(call: Draft, found: number): boolean {
    return (found & TYPE_BIT) !== 0 && isComplete(call) && addMessageId(call);
  }

  protected set(call: Draft, field: FieldName, at: number): number {
    switch (field) {
      case 'previousId':
      case 'writeKey':
        return NOT_CANONICAL;
      case 'type':
        return this.has(TRACK, at) ? at + TRACK.length : NOT_CANONICAL;
      case 'properties':
      case 'context':
      case 'traits': {
        const end = this.object(at);
        if (end >= 0) call[field] = this.text(at, end);
        return end;
      }
      case 'timestamp': {
        const ms = this.timestamp(at);
        if (ms === undefined || ms < TIMESTAMP_MS_MIN || ms > this.limits.timestampMsMax) return NOT_CANONICAL;
        call.timestamp = ms;
        return at + TIMESTAMP_LENGTH + 2;
      }
      case 'messageId':
        return this.#messageId(call, at);
      default: {
        // At most as many characters as bytes.
        const end = this.string(at, field === 'event' ? EVENT_NAME_LENGTH_MAX : IDENTIFIER_LENGTH_MAX);
        if (end >= 0) call[field] = this.text(at + 1, end - 1);
        return end;
      }
    }
  }

  #messageId(call: Draft, at: number): number {
    const end = this.string(at, MESSAGE_ID_LENGTH_MAX);
    if (end < 0) return end;
    call.messageId = this.text(at + 1, end - 1);
    if (this.isUuid(at)) call.uuid = call.messageId;
    // Perhaps a UUID in capitals.
    else if (end - at - 2 === UUID_LENGTH) return NOT_CANONICAL;
    return end;
  }
}

/** Every call starts as one, so that all have the same shape in V8. */
const EMPTY_CALL: Call = {
  type: 'track',
  event: '',
  messageId: undefined,
  uuid: undefined,
  timestamp: undefined,
  userId: undefined,
  groupId: undefined,
  ...Object.fromEntries(EVENT_IDENTIFIERS.map(({ field }) => [field, undefined])),
  properties: undefined,
  context: undefined,
  traits: undefined,
  changes: [],
};

/** Whether the call has what a track call needs, and its organization is not in the context. */
function isComplete({ event, timestamp, userId, anonymousId, groupId, context }: Draft): boolean {
  if (event === '' || timestamp === undefined) return false;
  if ((userId ?? anonymousId ?? groupId) === undefined) return false;
  return groupId !== undefined || context === undefined || !context.includes('"groupId"');
}

/** Adds a messageId that is not the uuid to the context. Returns false where the context may have one. */
function addMessageId(call: Draft): boolean {
  if (call.messageId === undefined || call.uuid !== undefined) return true;
  const { context = '{}' } = call;
  if (context.includes('"messageId"')) return false;
  const rest = context === '{}' ? '{' : `${context.slice(0, -1)},`;
  call.context = `${rest}"messageId":"${call.messageId}"}`;
  return true;
}
