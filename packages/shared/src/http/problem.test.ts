import { expect, test } from 'vitest';
import { z } from 'zod';
import { invalidRequest, problemBody } from './problem.ts';

const schema = z.strictObject({
  name: z.string().refine((name) => name !== '', 'must not be empty'),
  kind: z.enum(['a', 'b']),
  count: z.number(),
});

function errorsOf(value: unknown) {
  return problemBody(invalidRequest(schema.safeParse(value).error?.issues ?? []), 'id').errors;
}

test('an error has a reason, and beside it the code that it had before', () => {
  expect(errorsOf({ name: '', kind: 'c', count: 1, colour: 'red' })).toMatchObject([
    { path: 'name', reason: 'invalid_value', code: 'custom', message: 'must not be empty' },
    { path: 'kind', reason: 'invalid_value', code: 'invalid_value' },
    { path: 'colour', reason: 'unknown_field', code: 'unknown_field' },
  ]);
  expect(errorsOf({ name: 'a', kind: 'a' })).toMatchObject([
    { path: 'count', reason: 'invalid_type', code: 'invalid_type' },
  ]);
});
