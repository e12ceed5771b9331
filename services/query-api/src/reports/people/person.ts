import { z } from 'zod';
import { EVENT_COLUMNS } from '../../records/records.ts';

// Whom a report counts, and the order of their events.

/** Who goes through a funnel, or comes back. */
const PERSONS = ['user', 'organization'] as const;

export type Person = (typeof PERSONS)[number];

/** @param what they do */
export function personParameter(what: string) {
  return z.enum(PERSONS, `must be one of ${PERSONS.join(', ')}`).meta({
    default: 'user',
    description: `${what}: users (\`userId\`) or organizations (\`groupId\`). Events without it do not count.`,
  });
}

/** Returns the column with the identifier of the persons. */
export function personColumn({ by }: { readonly by: Person }): string {
  return EVENT_COLUMNS[by === 'user' ? 'userId' : 'groupId'].column;
}

/** The earliest time that can be stored, the beginning of 1900, is this many milliseconds before 1970. */
export const MS_BEFORE_1970 = '2208988800000';

/** The bits of a place behind the time: 53 of microseconds, 128 of a uuid, 8 that are free. */
export const PLACE_TIME_SHIFT = 189;

/** The place of an event among those of a person, as one number: by its time, when it was received, and its uuid. */
export const EVENT_PLACE = `bitShiftLeft(toUInt256(toUnixTimestamp64Milli(timestamp) + ${MS_BEFORE_1970}), ${PLACE_TIME_SHIFT})
      + bitShiftLeft(toUInt256(toUnixTimestamp64Micro(received_at)), 136)
      + bitShiftLeft(toUInt256(toUInt128(uuid)), 8)`;
