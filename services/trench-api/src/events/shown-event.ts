import { jsonText } from '@sluice/submissions/reading/json-members';
import { z } from 'zod';
import type { JsonMembers } from '../upstream/json-list.ts';

const jsonObject = z.record(z.string(), z.unknown());

/** An event as Trench shows it. What is missing is left out. */
export const shownEvent = z
  .object({
    uuid: z.string(),
    type: z.string(),
    event: z.string(),
    userId: z.string().optional(),
    groupId: z.string().optional(),
    anonymousId: z.string().optional(),
    instanceId: z.string().optional(),
    properties: jsonObject.optional(),
    traits: jsonObject.optional(),
    context: jsonObject.optional(),
    timestamp: z.string().meta({ description: 'When it happened: ISO 8601, in UTC.' }),
    parsedAt: z.string().meta({ description: 'When it was accepted: ISO 8601, in UTC.' }),
  })
  .meta({ id: 'Event' });

export type ShownEvent = z.output<typeof shownEvent>;

/** A list of events, as Trench responds with it. */
export const shownEvents = z
  .object({
    results: z.array(shownEvent),
    limit: z.int(),
    offset: z.int(),
    total: z.int().meta({ description: 'The exact number of events.' }),
  })
  .meta({ id: 'Events' });

/** The identifiers that are left out when they are missing. */
const IDENTIFIERS = ['userId', 'groupId', 'anonymousId', 'instanceId'] as const;

/** Returns the JSON of an event of query-api as Trench shows it. */
export function shownOf(stored: JsonMembers): string {
  const member = (name: string, storedName = name): (readonly [string, string])[] => {
    const json = stored.get(storedName);
    return json === undefined ? [] : [[name, json]];
  };
  // The uuid of an event of nobody is its anonymousId.
  const isThere = ([name, json]: readonly [string, string]) =>
    json !== 'null' && !(name === 'anonymousId' && json === stored.get('uuid'));
  return jsonText([
    ...['uuid', 'type', 'event'].flatMap((name) => member(name)),
    ...IDENTIFIERS.flatMap((name) => member(name)).filter(isThere),
    ...['properties', 'traits', 'context', 'timestamp'].flatMap((name) => member(name)),
    ...member('parsedAt', 'receivedAt'),
  ]);
}
