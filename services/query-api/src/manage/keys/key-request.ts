import { invalidRequest } from '@sluice/shared/http/problem';
import { rateLimit, SCOPES } from '@sluice/shared/keys/keys-file';
import { z } from 'zod';

/** The body of `POST /keys`. */
export const newKeySchema = z
  .strictObject({
    scopes: z
      .array(z.enum(SCOPES, `must be one of ${SCOPES.join(', ')}`))
      .min(1, 'must name a scope')
      .transform((given) => SCOPES.filter((scope) => given.includes(scope)))
      .meta({ description: 'What the key may do. A key can give only scopes that it has itself.' }),
    rateLimit: rateLimit.optional().meta({
      description:
        'How many events a second the key may submit, and how many queries a second it may send. Not more than the key that creates it; default: as that one.',
    }),
  })
  .meta({ id: 'NewKey' });

export type NewKey = z.output<typeof newKeySchema>;

/** @throws {Problem} `invalid_request`, naming every error */
export function parseNewKey(body: unknown): NewKey {
  const result = newKeySchema.safeParse(body);
  if (result.success) return result.data;
  throw invalidRequest(result.error.issues);
}
