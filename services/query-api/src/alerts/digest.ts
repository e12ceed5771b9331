import { z } from 'zod';
import { timeZoneParameter } from '../reports/reports.ts';
import { stateParameter, urlParameter } from '../webhooks/webhooks.ts';
import { formatParameter } from './alert.ts';
import type { Trouble } from './trouble.ts';

/** Digests of a workspace. */
export const DIGESTS_MAX = 20;

const fields = {
  dashboard: z
    .uuid('must be the id of a dashboard')
    .transform((id) => id.toLowerCase())
    .meta({ description: 'Its tiles that are drawn as a number are in the digest.' }),
  hour: z
    .int('must be a whole number')
    .min(0, 'must be 0 at least')
    .max(23, 'must be 23 at most')
    .meta({ description: 'The hour of the day from which on it is sent.' }),
  timeZone: timeZoneParameter,
  url: urlParameter,
  format: formatParameter,
};

/** The body of `POST /digests`. */
export const newDigestSchema = z
  .strictObject({ ...fields, timeZone: fields.timeZone.default('UTC'), format: fields.format.default('signed') })
  .meta({ id: 'NewDigest' });

/** The body of `PATCH /digests/ID`: what is missing stays as it is. */
export const digestChangeSchema = z
  .strictObject({ ...z.strictObject(fields).partial().shape, state: stateParameter.optional() })
  .meta({ id: 'DigestChange' });

/** What is stored of a digest besides its address. */
export type Digest = Omit<z.output<typeof newDigestSchema>, 'url'>;

/** What is known of a digest: the position of its webhook, as JSON. Times in milliseconds since 1970. */
export interface DigestState {
  /** When the last one was due that needs no message any more; 0: not known yet. */
  readonly dueMs: number;
  readonly messages: number;
  readonly messageAtMs: number;
  readonly trouble: Trouble | null;
}

export const NEW_DIGEST: DigestState = { dueMs: 0, messages: 0, messageAtMs: 0, trouble: null };

/** Returns when the last digest up to a time was due, and the end of the day before. Where clocks skip the hour, it is due after it. */
export function lastDue({ hour, timeZone }: Pick<Digest, 'hour' | 'timeZone'>, upToMs: number) {
  const today = Temporal.Instant.fromEpochMilliseconds(upToMs).toZonedDateTimeISO(timeZone).toPlainDate();
  const at = (day: Temporal.PlainDate) => day.toZonedDateTime({ timeZone, plainTime: { hour } }).epochMilliseconds;
  const day = at(today) <= upToMs ? today : today.subtract({ days: 1 });
  return { dueMs: at(day), endMs: day.toZonedDateTime(timeZone).epochMilliseconds };
}
