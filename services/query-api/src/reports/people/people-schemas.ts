import { z } from 'zod';
import { limitSchema, nextCursorSchema } from '../../http/openapi-schemas.ts';
import { reportEndSchemas } from '../report-schemas.ts';

/** Returns the schema of a page of people. */
export function peopleSchema(person: z.ZodType) {
  return z.object({
    limit: limitSchema,
    results: z.array(person).meta({
      description: 'In the order of the bytes of their identifiers; empty when `complete` is `false`.',
    }),
    nextCursor: nextCursorSchema,
    ...reportEndSchemas,
  });
}
