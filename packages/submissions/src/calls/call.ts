import type { EntityKind } from '@sluice/shared/rows';
import type { EventIdentifier } from '@sluice/shared/rows/event-identifiers';
import type { SubmittedProperty } from '../reading/submission.ts';
import type { Link } from '../rows/link-row.ts';

/**
 * The types of calls that Segment's clients make, and RudderStack's, which have the same format. An event of PostHog's
 * clients becomes a call.
 */
export const CALL_TYPES = ['track', 'identify', 'group', 'page', 'screen', 'alias'] as const;

export type CallType = (typeof CALL_TYPES)[number];

/** In code points. */
export const MESSAGE_ID_LENGTH_MAX = 512;

/** A valid call: an event, and perhaps properties that it sets. */
export interface Call extends Partial<Record<EventIdentifier, string | undefined>> {
  readonly type: CallType;
  /** The name of the event. */
  readonly event: string;
  readonly messageId: string | undefined;
  /** The messageId, when it is a UUID. Otherwise one is derived of the messageId. */
  readonly uuid: string | undefined;
  /**
   * What the uuid of a call without a messageId is made of, so that it is the same in each retry; `undefined`: each time a new
   * one.
   */
  readonly content?: string | undefined;
  /** In milliseconds since 1970; `undefined`: the time of receipt. */
  readonly timestamp: number | undefined;
  readonly userId: string | undefined;
  readonly groupId: string | undefined;
  /** Objects as JSON text. */
  readonly properties: string | undefined;
  readonly context: string | undefined;
  readonly traits: string | undefined;
  /** Whose properties are set or removed. */
  readonly changed: EntityKind;
  readonly changes: readonly SubmittedProperty[];
  /** Whose visitors it says that some are. */
  readonly links: readonly Link[];
}

/** Why a call cannot be taken. Clients see both; never change a code. */
export interface CallError {
  readonly code: 'invalid_call' | 'too_large';
  /** A sentence. */
  readonly message: string;
}

/** A call is of a type that its route says, or says its type itself: `batch`. */
export type CallRoute = CallType | 'batch';

/** How calls are written: as on a route of Segment's clients, or as PostHog's clients write events. */
export type CallForm = CallRoute | 'posthog';

/**
 * What is wrong with a call that is rejected, as metrics count it. Alerts name it: never change one.
 *
 * - `identifier`: it has none, or one that cannot be stored
 * - `malformed`: it is no object, or holds more than is parsed
 * - `name`, `type`, `time`: that of the event
 * - `properties`: also `context` and `traits`
 * - `too_large`: it, or its row
 */
export type RejectionReason = 'identifier' | 'malformed' | 'name' | 'properties' | 'time' | 'too_large' | 'type';

/** What makes a call one that cannot be taken. Its message is a sentence. */
export class InvalidCall extends Error {
  override readonly name = 'InvalidCall';
  readonly reason: RejectionReason;

  constructor(reason: RejectionReason, message: string) {
    super(message);
    this.reason = reason;
  }
}
