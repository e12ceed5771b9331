import { integer } from '@sluice/shared/config';

/** The earliest timestamp of an event, in milliseconds since 1970: 2000-01-01. */
export const TIMESTAMP_MS_MIN = Date.UTC(2000, 0, 1);

/** How far an event's timestamp may be ahead of the server's clock, in milliseconds: one day. */
export const TIMESTAMP_AHEAD_MS_MAX = 24 * 60 * 60 * 1_000;

/** Values in an event, or in one property of a user or organization: objects, arrays, strings, numbers and so on. */
export const JSON_VALUES_MAX = 10_000;

/** In code points. */
export const IDENTIFIER_LENGTH_MAX = 512;

/** In code points. */
export const EVENT_NAME_LENGTH_MAX = 200;

/** Visible ASCII characters. */
export const IDEMPOTENCY_KEY_LENGTH_MAX = 200;

/** The limits of submissions that are configured, and the clock that timestamps are compared with. */
export interface SubmissionLimits {
  readonly eventsMax: number;
  /** Properties of the user or organization in one submission. */
  readonly propertiesMax: number;
  /** The server's clock, in milliseconds since 1970. */
  readonly now: () => number;
}

/** Returns the time inside a UUIDv7, in milliseconds since 1970; `undefined` for other versions (RFC 9562, section 5.7). */
export function uuidV7TimeMs(uuid: string | undefined): number | undefined {
  return uuid?.[14] === '7' ? Number.parseInt(uuid.slice(0, 8) + uuid.slice(9, 13), 16) : undefined;
}

/** The limits of what producers send, in the environment of ingest-api and of the command for dead letters. */
export const limitsEnv = {
  EVENT_BYTES_MAX: integer(1_024, 384 * 1_024).default(256 * 1_024),
  PROPERTIES_PER_SUBMISSION_MAX: integer(1).default(1_000),
};
