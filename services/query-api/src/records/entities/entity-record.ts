import type { EntityRoute } from './entity-kinds.ts';

/** A user or an organization, and when it was seen, in milliseconds. */
export interface SeenEntity {
  readonly id: string;
  readonly firstSeenMs: number;
  readonly lastSeenMs: number;
}

/** A property of a user or an organization, as JSON, and when it was set last, in microseconds. */
export type Property = readonly [name: string, json: string, setUs: number];

/** A user or an organization as it is now. Its properties come in pieces; those of a large one are read as they are taken. */
export interface Entity extends SeenEntity {
  readonly properties: Iterable<readonly Property[]> | AsyncIterable<readonly Property[]>;
}

/** A longer record is sent in chunks. */
const CHUNK_CHARACTERS = 64 * 1_024;

/**
 * Returns an entity's record as JSON, in chunks, with the values of its properties as they were stored. It builds no
 * object of the properties, since a name such as `__proto__` would change that.
 *
 * @param more.hasTimes whether the record says of each property when it was set last
 * @param more.mergedInto whom a user became, as far as it became somebody else
 */
export async function* entityRecord(
  idName: EntityRoute['idName'],
  entity: Entity,
  { hasTimes = false, mergedInto }: { readonly hasTimes?: boolean; readonly mergedInto?: string | undefined } = {},
): AsyncGenerator<string, void, undefined> {
  let text = `{"${idName}":${JSON.stringify(entity.id)},"properties":{`;
  let separator = '';
  const times: string[] = [];
  for await (const properties of entity.properties) {
    for (const [name, json, setUs] of properties) {
      text += `${separator}${JSON.stringify(name)}:${json}`;
      separator = ',';
      if (hasTimes) times.push(`${JSON.stringify(name)}:"${isoTime(Math.floor(setUs / 1_000))}"`);
      if (text.length < CHUNK_CHARACTERS) continue;
      yield text;
      text = '';
    }
  }
  yield `${text}},"firstSeenAt":"${isoTime(entity.firstSeenMs)}","lastSeenAt":"${isoTime(entity.lastSeenMs)}"`;
  if (mergedInto !== undefined) yield `,"mergedInto":${JSON.stringify(mergedInto)}`;
  yield hasTimes ? `,"propertiesSetAt":{${times.join(',')}}}` : '}';
}

/** Returns the record of a membership as JSON: the other user or organization, and when the two were seen together. */
export function membershipRecord(idName: EntityRoute['idName'], { id, firstSeenMs, lastSeenMs }: SeenEntity): string {
  return `{"${idName}":${JSON.stringify(id)},"firstSeenAt":"${isoTime(firstSeenMs)}","lastSeenAt":"${isoTime(lastSeenMs)}"}`;
}

/** Returns a time in milliseconds since 1970 as ISO 8601, in UTC. */
export function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}
