import { integer } from '@sluice/shared/config';

/** The limits of what producers send, in the environment of ingest-api and of the command for dead letters. */
export const limitsEnv = {
  EVENT_BYTES_MAX: integer(1_024, 384 * 1_024).default(256 * 1_024),
  PROPERTIES_PER_SUBMISSION_MAX: integer(1).default(1_000),
};
