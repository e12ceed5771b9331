import { unauthorized } from '@sluice/shared/http/authentication';
import { PROBLEMS, Problem, type ProblemCode } from '@sluice/shared/http/problem';
import { z } from 'zod';

const inputError = z.object({ path: z.string(), code: z.string(), message: z.string() });

const problem = z.object({
  code: z.enum(Object.keys(PROBLEMS) as [ProblemCode, ...ProblemCode[]]),
  detail: z.string(),
  errors: z.array(inputError).optional(),
});

/** Problems that a service has only with a request that is not as this service should send it. */
const OWN_FAULTS: readonly ProblemCode[] = [
  'not_found',
  'method_not_allowed',
  'unsupported_media_type',
  'host_not_allowed',
  'malformed_json',
  'internal',
];

/**
 * Returns the problem of a response as the client gets it. A key without the scope gets `401`: in Trench it is a key of the
 * other kind.
 *
 * @param unavailable the code where the response has none of the service
 * @param mayBeMissing whether `not_found` is for the client
 */
export function problemOf(
  response: Response,
  content: unknown,
  { unavailable, mayBeMissing }: { readonly unavailable: ProblemCode; readonly mayBeMissing: boolean },
): Problem {
  const { success, data } = problem.safeParse(content);
  if (!success) return new Problem(unavailable, 'The request cannot be served now; send it again.', { retryAfter: 5 });
  const { code, detail, errors } = data;
  if (code === 'unauthorized' || code === 'missing_scope') return unauthorized(detail);
  if (OWN_FAULTS.includes(code) && !(code === 'not_found' && mayBeMissing)) {
    const cause = new Error(`${response.url.split('?', 1)[0]} responded ${code}: ${detail}`);
    return new Problem('internal', 'The service failed; its log has the cause under this request id.', { cause });
  }
  const retryAfter = Number(response.headers.get('retry-after') ?? Number.NaN);
  return new Problem(code, detail, {
    ...(errors && { errors }),
    ...(Number.isInteger(retryAfter) && { retryAfter }),
  });
}
