import type { EntityRoute } from './entity-kinds.ts';

/** A user or an organization, and when it was seen, in milliseconds. */
export interface SeenEntity {
  readonly id: string;
  readonly firstSeenMs: number;
  readonly lastSeenMs: number;
}

/** A user or an organization as it is now. The values of the properties are JSON. */
export interface Entity extends SeenEntity {
  readonly properties: readonly (readonly [name: string, json: string])[];
}

/**
 * Returns an entity's record as JSON, with the values of its properties as they were stored. It builds no object of the
 * properties, since a name such as `__proto__` would change that.
 */
export function entityRecord(idName: EntityRoute['idName'], entity: Entity): string {
  const properties = entity.properties.map(([name, json]) => `${JSON.stringify(name)}:${json}`).join(',');
  return `{"${idName}":${JSON.stringify(entity.id)},"properties":{${properties}},"firstSeenAt":"${isoTime(entity.firstSeenMs)}","lastSeenAt":"${isoTime(entity.lastSeenMs)}"}`;
}

/** Returns the record of a membership as JSON: the other user or organization, and when the two were seen together. */
export function membershipRecord(idName: EntityRoute['idName'], { id, firstSeenMs, lastSeenMs }: SeenEntity): string {
  return `{"${idName}":${JSON.stringify(id)},"firstSeenAt":"${isoTime(firstSeenMs)}","lastSeenAt":"${isoTime(lastSeenMs)}"}`;
}

/** Returns a time in milliseconds since 1970 as ISO 8601, in UTC. */
export function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}
