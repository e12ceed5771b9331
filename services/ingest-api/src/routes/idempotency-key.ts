import { idempotencyKey } from '@sluice/submissions/reading/submission';
import type { z } from 'zod';

/** Reads the header `Idempotency-Key`: the key, or what is wrong with it. */
export function readIdempotencyKey(header: string | string[] | undefined): {
  readonly key: string | undefined;
  readonly issues: readonly z.core.$ZodIssue[];
} {
  if (header === undefined) return { key: undefined, issues: [] };
  const { data, error } = idempotencyKey.safeParse(header);
  return { key: data, issues: (error?.issues ?? []).map((issue) => ({ ...issue, path: ['Idempotency-Key'] })) };
}
