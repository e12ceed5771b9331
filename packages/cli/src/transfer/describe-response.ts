import { problemSchema } from '@sluice/shared/http/problem';
import { z } from 'zod';

/** What is read of a problem. An older service sends less. */
const readProblem = problemSchema.pick({ code: true, detail: true }).extend({
  errors: z.array(z.object({ path: z.string(), message: z.string() })).optional(),
});

/** Returns what an error response says, in a line. */
export function describeResponse(status: number, text: string): string {
  const body = readProblem.safeParse(jsonOf(text));
  if (!body.success) return `status ${status}`;
  const { code, detail, errors = [] } = body.data;
  return `${status} ${code}: ${[detail, ...errors.map(({ path, message }) => `${path} ${message}`)].join(' ')}`;
}

/** Node.js's codes for a certificate that no known authority has signed. */
const UNKNOWN_AUTHORITY = /^(UNABLE_TO_(VERIFY_LEAF_SIGNATURE|GET_ISSUER_CERT(_LOCALLY)?)|.*SELF_SIGNED_CERT.*)$/;

/** Returns why a request got no response, as a phrase. */
export function describeFailure(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'ECONNREFUSED') return 'the connection was refused';
  const advice = UNKNOWN_AUTHORITY.test(code ?? '') ? '; set NODE_EXTRA_CA_CERTS to the file of its authority' : '';
  return `the connection failed (${code ?? message}${advice})`;
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
