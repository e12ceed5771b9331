import type { EntityRoute } from './entity-kinds.ts';

/** A user or an organization as it is now. Times in milliseconds; the values of the properties are JSON. */
export interface Entity {
  readonly id: string;
  readonly firstSeenMs: number;
  readonly lastSeenMs: number;
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

/** A user of an organization, or an organization of a user, and when the two were seen together, in milliseconds. */
export interface Membership {
  readonly id: string;
  readonly firstSeenMs: number;
  readonly lastSeenMs: number;
}

/** Returns a membership's record as JSON. */
export function membershipRecord(idName: EntityRoute['idName'], { id, firstSeenMs, lastSeenMs }: Membership): string {
  return `{"${idName}":${JSON.stringify(id)},"firstSeenAt":"${isoTime(firstSeenMs)}","lastSeenAt":"${isoTime(lastSeenMs)}"}`;
}

function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}
