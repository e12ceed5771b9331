import type { z } from 'zod';

/** What the operations with a key have in common: a key without the scope is of the other kind. */
export const WITH_KEY = { withoutCodes: ['missing_scope'] } as const;

export const BODY_CODES = ['malformed_json', 'body_too_large', 'unsupported_media_type'] as const;

/** The content of a body in JSON. */
export const json = <Schema extends z.ZodType>(schema: Schema, example: z.input<Schema>) => ({
  'application/json': { schema, example },
});
