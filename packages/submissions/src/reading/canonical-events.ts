import { EVENT_IDENTIFIERS } from '@sluice/shared/rows';
import { NOT_CANONICAL } from './canonical-json.ts';
import { type CanonicalLimits, CanonicalReader, fieldsOf, TIMESTAMP_LENGTH, UUID_LENGTH } from './canonical-reader.ts';
import { acceptsTime, emptyEvent } from './event-parser.ts';
import type { SubmittedEvent } from './submission.ts';
import { EVENT_NAME_LENGTH_MAX, IDENTIFIER_LENGTH_MAX } from './submission-limits.ts';

const FIELDS = fieldsOf([
  ...(['event', 'type', 'uuid', 'timestamp', 'properties', 'context', 'traits'] as const),
  ...EVENT_IDENTIFIERS.map(({ field }) => field),
]);

const TRACK = Buffer.from('"track"');

/** Reads canonical events. An event with an unknown field is not valid, and is left to event-parser.ts. */
export class CanonicalEvents extends CanonicalReader<SubmittedEvent, keyof SubmittedEvent> {
  constructor(body: Buffer, limits: CanonicalLimits) {
    super(body, FIELDS, limits);
  }

  protected create(): SubmittedEvent {
    return emptyEvent();
  }

  protected pass(): number {
    return NOT_CANONICAL;
  }

  protected finish(event: SubmittedEvent): boolean {
    return event.event !== '' && acceptsTime(event, this.limits.timestampMsMax);
  }

  protected set(event: SubmittedEvent, field: keyof SubmittedEvent, at: number): number {
    switch (field) {
      case 'properties':
      case 'context':
      case 'traits': {
        const end = this.object(at);
        if (end >= 0) event[field] = this.text(at, end);
        return end;
      }
      case 'uuid':
        if (!this.isUuid(at)) return NOT_CANONICAL;
        event.uuid = this.text(at + 1, at + 1 + UUID_LENGTH);
        return at + UUID_LENGTH + 2;
      case 'timestamp': {
        const ms = this.timestamp(at);
        if (ms === undefined) return NOT_CANONICAL;
        event.timestamp = ms;
        return at + TIMESTAMP_LENGTH + 2;
      }
      case 'type':
        if (!this.has(TRACK, at)) return NOT_CANONICAL;
        event.type = 'track';
        return at + TRACK.length;
      default: {
        // At most as many characters as bytes.
        const end = this.string(at, field === 'event' ? EVENT_NAME_LENGTH_MAX : IDENTIFIER_LENGTH_MAX);
        if (end >= 0) event[field] = this.text(at + 1, end - 1);
        return end;
      }
    }
  }
}
