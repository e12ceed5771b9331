/** A user or an organization as it is now. Times in milliseconds; the values of the properties are JSON text. */
export interface Entity {
  readonly id: string;
  readonly firstSeenMs: number;
  readonly lastSeenMs: number;
  readonly properties: readonly (readonly [name: string, json: string])[];
}

/** An entity as JSON text, its properties' values unchanged. Names are data, so no object is ever made of them. */
export function entityRecord(idName: 'foreignId' | 'foreignUserGroupId', entity: Entity): string {
  const properties = entity.properties.map(([name, json]) => `${JSON.stringify(name)}:${json}`).join(',');
  return `{"${idName}":${JSON.stringify(entity.id)},"properties":{${properties}},"firstSeenAt":"${isoTime(entity.firstSeenMs)}","lastSeenAt":"${isoTime(entity.lastSeenMs)}"}`;
}

/** A time in UTC with milliseconds. */
function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}
