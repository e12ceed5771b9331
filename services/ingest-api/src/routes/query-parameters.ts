import { z } from 'zod';

/** A parameter that is given once. */
export const given = z
  .array(z.string())
  .length(1, 'must be given once')
  .transform(([text]) => text);

/**
 * Returns an error for each parameter with a plus that is not escaped. Forms write a space as a plus, and people write a
 * plus as it is: whoever guesses may delete another user.
 */
export function plusErrors(url: string): z.core.$ZodIssue[] {
  if (!url.includes('+')) return [];
  const message = 'must not hold a "+" that is not escaped: write a plus as %2B, and a space as %20';
  const pairs = url.slice(url.indexOf('?') + 1).split('&');
  return pairs
    .filter((pair) => pair.includes('+'))
    .map((pair) => ({ code: 'custom', path: [pair.split('=', 1)[0] ?? ''], message, input: undefined }));
}
