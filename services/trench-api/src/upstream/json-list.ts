import { Turns } from '@sluice/shared/base/turns';
import { parseName, parseSlice } from '@sluice/submissions/reading/body-slices';
import { JsonCursor } from '@sluice/submissions/reading/json-cursor';
import { jsonMembers } from '@sluice/submissions/reading/json-members';

/** The texts of the members of an object, by their names; of equal names the last counts. */
export type JsonMembers = ReadonlyMap<string, string>;

/** A response with a list, which may be large. */
export interface JsonList {
  /** JSON: an array of what the items became. */
  readonly items: Buffer;
  /** The other members of the response. */
  readonly others: Readonly<Record<string, unknown>>;
}

/**
 * Reads an object with a list of objects, one item after the other, between which other requests have their turns. Values stay
 * text, so that none of their digits is lost.
 *
 * @param name of the member with the list
 * @param convert returns the JSON text that an item becomes
 * @throws {MalformedJson | SyntaxError} when it is no such object
 */
export async function readJsonList(
  body: Buffer,
  name: string,
  convert: (item: JsonMembers) => string,
): Promise<JsonList> {
  const turns = new Turns();
  const cursor = new JsonCursor(body);
  const items: Buffer[] = [];
  const others: Record<string, unknown> = {};
  for (const nameSlice of cursor.members()) {
    const member = parseName(body, nameSlice);
    if (member !== name) {
      others[member] = parseSlice(body, cursor.skip());
      continue;
    }
    for (const { start, end } of cursor.elements()) {
      await turns.next();
      items.push(Buffer.from(convert(membersOf(body.subarray(start, end)))));
    }
  }
  cursor.end();
  return { items: jsonArray(items), others };
}

/** Returns the JSON of an array of values that are JSON. */
export function jsonArray(values: readonly Buffer[]): Buffer {
  const parts = values.flatMap((value, index) => (index === 0 ? [value] : [COMMA, value]));
  return Buffer.concat([Buffer.from('['), ...parts, Buffer.from(']')]);
}

const COMMA = Buffer.from(',');

function membersOf(object: Buffer): JsonMembers {
  return new Map(Array.from(jsonMembers(object), ([name, json]) => [name, json.toString()]));
}
