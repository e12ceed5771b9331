/**
 * What travels through Kafka. A message's value is rows, one JSON object a line, in the shape of the staging table of
 * its kind; its headers say which kind and which version of the format.
 */

/** The kinds of messages: events to store, and changes of users and organizations. */
export type MessageKind = 'events' | 'changes';

/** The version of the rows' format that this code writes. */
export const ROW_FORMAT = '1';

/** Headers of a message of rows. */
export function messageHeaders(kind: MessageKind): { kind: MessageKind; format: string } {
  return { kind, format: ROW_FORMAT };
}

/** An event as the writer stages it. Times are integers: `timestamp` milliseconds, `received_at` microseconds. */
export interface EventRow {
  workspace_id: string;
  timestamp: number;
  uuid: string;
  event: string;
  user_id?: string;
  group_id?: string;
  anonymous_id?: string;
  instance_id?: string;
  properties?: Readonly<Record<string, unknown>>;
  context?: Readonly<Record<string, unknown>>;
  traits?: Readonly<Record<string, unknown>>;
  /** When the event was accepted, in microseconds: its version, too (compared with deletions). */
  received_at: number;
  /** The timestamp is the time of receipt because the event brought none: a repeat is recognised by uuid. */
  stamped?: 1;
}

export type EntityKind = 'user' | 'organization';

/** A change of a user or an organization, as the writer stages it. */
export interface ChangeRow {
  workspace_id: string;
  kind: EntityKind;
  id: string;
  /** `seen`: a submission without events named it. `set` and `remove`: of one property. `delete`: of the whole. */
  operation: 'seen' | 'set' | 'remove' | 'delete';
  /** When the change was accepted, in microseconds. The higher version wins. */
  version: number;
  /** Identifies the submission; decides between equal versions, so that every order of arrival ends the same. */
  change_id: string;
  property?: string;
  /** The property's value as JSON text. */
  value?: string;
}
