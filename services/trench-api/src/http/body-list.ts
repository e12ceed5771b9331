import { Problem } from '@sluice/shared/http/problem';
import { isJsonObject } from '@sluice/submissions/reading/json-object';

/**
 * Returns a member of the body that has to be a list.
 *
 * @throws {Problem} `invalid_request`
 */
export function listOf(body: unknown, name: string): readonly unknown[] {
  const list = isJsonObject(body) ? body[name] : undefined;
  if (Array.isArray(list)) return list;
  throw new Problem('invalid_request', `The body must be an object with the list "${name}".`, {
    errors: [{ path: name, code: 'invalid_type', message: 'must be a list' }],
  });
}
