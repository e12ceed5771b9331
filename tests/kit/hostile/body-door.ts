import { seededRandom } from '../random.ts';
import type { Door, Expectation, HostileRequest } from './door.ts';
import { LIMITS, type LimitId } from './limits.ts';
import { PRINTABLE, pick, type Random, textOf } from './texts.ts';

type Values = ReadonlyMap<LimitId, number>;

/** A route that takes a JSON object. */
export interface BodyDoorOptions {
  readonly request: Omit<HostileRequest, 'headers' | 'body'> & Partial<Pick<HostileRequest, 'headers'>>;
  /** The limits of parts of the body; each refusal names its number. Default none. */
  readonly limits?: readonly LimitId[];
  /** The limits of what is in a list, each with that of the list: what is in a list that is too long is not looked at. */
  readonly lists?: Readonly<Partial<Record<LimitId, LimitId>>>;
  /** The limit of the body as a whole, in bytes. */
  readonly bodyLimit?: LimitId;
  readonly body: (values: Values, random: Random) => object;
  /** What the response is when nothing is beyond its limit. */
  readonly answered: Expectation;
}

export function bodyDoor({ request, limits = [], lists = {}, bodyLimit, body, answered }: BodyDoorOptions): Door {
  return {
    limits: bodyLimit === undefined ? limits : [...limits, bodyLimit],
    build(values, seed) {
      const json = JSON.stringify(body(values, seededRandom(seed)));
      const bytes = padded(json, bodyLimit && values.get(bodyLimit));
      const isTooLarge = bodyLimit !== undefined && bytes.length > LIMITS[bodyLimit].max;
      const isBeyond = (limit: LimitId) => (values.get(limit) ?? 0) > LIMITS[limit].max;
      const isUnread = (list: LimitId | undefined) => list !== undefined && isBeyond(list);
      const faults = limits.filter((limit) => isBeyond(limit) && !isUnread(lists[limit]));
      const invalid = { statuses: [400], named: [['invalid_request'], ...faults.map((one) => [`${LIMITS[one].max}`])] };
      const refused = isTooLarge ? { statuses: [413], named: [['body_too_large']] } : invalid;
      return {
        request: { ...request, headers: { 'content-type': 'application/json', ...request.headers }, body: bytes },
        expected: isTooLarge || faults.length > 0 ? refused : answered,
      };
    },
  };
}

/** Pads a JSON object with white space to so many bytes. */
export function padded(json: string, bytes: number | undefined): Buffer {
  const body = Buffer.from(json);
  if (bytes === undefined || bytes <= body.length) return body;
  return Buffer.concat([Buffer.from('{'), Buffer.alloc(bytes - body.length, 0x20), body.subarray(1)]);
}

/** A text of so many code points that neither begins nor ends with white space. */
export function textOfLength(random: Random, codePoints: number): string {
  return codePoints < 3 ? 'n'.repeat(codePoints) : `n${textOf(pick(random, PRINTABLE), codePoints - 2)}n`;
}
