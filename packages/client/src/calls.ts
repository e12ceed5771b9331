/** A JSON object. */
export type Properties = object;

/** Events by name, and the properties of each: `{ signed_up: { plan: string } }`. */
export type EventMap<Events> = { readonly [Name in keyof Events]: Properties };

/** Events of any name with any properties. */
export type AnyEvents = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

/** Whom a call is about, when it happened, and where. One of `userId`, `anonymousId` and `groupId` is needed. */
export interface CallFields {
  readonly userId?: string | undefined;
  readonly anonymousId?: string | undefined;
  readonly groupId?: string | undefined;
  /** When it happened. Default: now. */
  readonly timestamp?: Date | string | undefined;
  /** Tells a repeat from a new call; a UUID becomes the event's uuid. Default: a new UUIDv7. */
  readonly messageId?: string | undefined;
  /** A JSON object. */
  readonly context?: Properties | undefined;
}

/** A call as it is sent to `POST /v1/batch`. */
export interface Call extends CallFields {
  readonly type: 'track' | 'identify' | 'group' | 'page';
  readonly event?: string | undefined;
  readonly name?: string | undefined;
  readonly properties?: Properties | undefined;
  readonly traits?: Properties | undefined;
}

/**
 * What {@link ClientError} reports.
 * - `invalid_properties`: the properties of a call do not fit its schema. It is sent all the same.
 * - `invalid_call`: a call is not JSON, for example because it holds a BigInt.
 * - `rejected`: the service, or a proxy before it, rejected a call; the message says why.
 * - `queue_full`: the oldest calls were dropped because the queue is full.
 * - `request_failed`: a request failed. Its calls are kept and sent again.
 * - `not_delivered`: calls were left when `close` ended, or were made after it.
 */
export type ClientErrorCode =
  | 'invalid_properties'
  | 'invalid_call'
  | 'rejected'
  | 'queue_full'
  | 'request_failed'
  | 'not_delivered';

/** What `onError` gets. */
export interface ClientError {
  readonly code: ClientErrorCode;
  /** For a developer. */
  readonly message: string;
  /** How many calls are lost by it. */
  readonly dropped: number;
  /** The call, when the error is about one. */
  readonly call?: Call | undefined;
  /** The status of the response; 0 when there was none. */
  readonly status?: number | undefined;
}

export interface FlushOptions {
  /** How long to wait at most, in milliseconds. Default 30,000. */
  readonly timeoutMs?: number;
}

/** A call in the queue. */
export interface QueuedCall {
  /** Its messageId. */
  readonly id: string;
  /** Its JSON. It never changes, so that every repeat is recognised. */
  readonly text: string;
}

/** Keeps calls beyond the life of a page. `@sluice/client/offline` has one. It must never throw. */
export interface CallStore {
  add(call: QueuedCall): void;
  /** Removes calls that were delivered or dropped. */
  remove(calls: readonly QueuedCall[]): void;
  /** Resolves with the calls that pages which have ended left behind. */
  load(): Promise<readonly QueuedCall[]>;
}
