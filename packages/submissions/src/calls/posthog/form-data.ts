import { notJson } from '../../reading/body-problems.ts';

const START = Buffer.from('data=');

const BASE64 = /^[A-Za-z0-9+/_-]*={0,2}$/;

/**
 * Returns the JSON of a body: of a form (`data=…`), as posthog-js sends it where it may not compress or when its page is
 * left, the field `data`, which is JSON in base64 or JSON itself. Every other body is returned as it is.
 *
 * @throws {Problem} `malformed_json`
 */
export function jsonOfForm(body: Buffer): Buffer {
  if (!body.subarray(0, START.length).equals(START)) return body;
  const end = body.indexOf('&');
  const field = body.toString('latin1', START.length, end < 0 ? body.length : end);
  const text = decoded(field);
  if (!BASE64.test(text)) return Buffer.from(text);
  return Buffer.from(text, 'base64');
}

function decoded(field: string): string {
  try {
    // In base64 a plus is a plus. In JSON it would be a space, which forms write as %20 as well.
    return decodeURIComponent(field);
  } catch (error) {
    throw notJson(error);
  }
}
