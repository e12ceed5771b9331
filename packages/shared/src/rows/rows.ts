import type { IdentifierColumn } from './event-identifiers.ts';

/**
 * What travels through Kafka. A message's value is rows, one JSON object a line, in the shape of the staging table of
 * their kind. Its headers say which kind, and which version of the format.
 */

/** The kinds of messages: events to store, and changes of users and organizations. */
export type MessageKind = 'events' | 'changes' | 'rejected';

/** The version of the rows' format that this code writes. */
export const ROW_FORMAT = '1';

/** The header that says over how many partitions the rows of its message were spread. */
export const PARTITIONS_HEADER = 'partitions';

/** The headers of a message of rows. */
export function messageHeaders(kind: MessageKind): { kind: MessageKind; format: string } {
  return { kind, format: ROW_FORMAT };
}

/** An event as the writer stages it. */
export interface EventRow extends Partial<Record<IdentifierColumn, string>> {
  workspace_id: string;
  /** In milliseconds since 1970. */
  timestamp: number;
  uuid: string;
  /** Default: `track`. */
  type?: string;
  event: string;
  user_id?: string;
  group_id?: string;
  properties?: Readonly<Record<string, unknown>>;
  context?: Readonly<Record<string, unknown>>;
  traits?: Readonly<Record<string, unknown>>;
  /** When the event was accepted, in microseconds since 1970. It is also the version that is compared with deletions. */
  received_at: number;
  /** The event came without a timestamp and has the time of receipt. A repeat of it is recognised by its uuid alone. */
  stamped?: 1;
}

export type EntityKind = 'user' | 'organization';

/** A change of a user or an organization, or a fact of whose a visitor is, as the writer stages it. */
export interface ChangeRow {
  workspace_id: string;
  /** `visitor`: an anonymous one, whose `anonymousId` is the id. */
  kind: EntityKind | 'visitor';
  id: string;
  /**
   * `seen`: a submission without events named the entity. `set`, `set_once` and `remove`: of one property. `delete`: of the
   * entity. `set_once` counts only while nothing else changes the property; which one does is in property-versions.ts.
   * Of a visitor: `link` where something named both it and `user_id`, `say` where somebody said whose it is, or that it is nobody's.
   */
  operation: 'seen' | 'set' | 'set_once' | 'remove' | 'delete' | 'link' | 'say';
  /** When the change was accepted, in microseconds since 1970. The higher version wins. */
  version: number;
  /** Identifies the submission. It decides between equal versions, so that every order of arrival has one result. */
  change_id: string;
  property?: string;
  /** The property's value as JSON text. */
  value?: string;
  /** The organization that the same submission names, of a user who was seen. The user belongs to it. */
  group_id?: string;
  /** The user of a visitor. */
  user_id?: string;
}
