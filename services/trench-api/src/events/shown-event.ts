import { z } from 'zod';

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

/** An event of query-api. */
export type StoredEvent = Readonly<Record<string, unknown>>;

/** The identifiers that are left out when they are missing. */
const IDENTIFIERS = ['userId', 'groupId', 'anonymousId', 'instanceId'] as const;

/** Returns an event of query-api as Trench shows it. */
export function shownOf(stored: StoredEvent): Readonly<Record<string, unknown>> {
  const { uuid, type, event, properties, traits, context, timestamp, receivedAt } = stored;
  // Of an event of nobody the uuid is the anonymousId.
  const isThere = (id: unknown, name: string) => id !== null && !(name === 'anonymousId' && id === uuid);
  const identifiers = IDENTIFIERS.map((name) => [name, stored[name]] as const).filter(([name, id]) =>
    isThere(id, name),
  );
  return {
    ...{ uuid, type, event },
    ...Object.fromEntries(identifiers),
    ...{ properties, traits, context, timestamp, parsedAt: receivedAt },
  };
}
