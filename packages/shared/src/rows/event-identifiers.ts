/**
 * The identifiers that an event brings itself; `userId` and `groupId` come from its submission. `field` is the name in
 * the HTTP API, `column` the name in rows and tables. `grouped`: reports can group by it. A new identifier is a migration
 * and a line here. Only append: Idempotency-Key turns the identifiers, in this order, into uuids.
 */
export const EVENT_IDENTIFIERS = [
  { field: 'anonymousId', column: 'anonymous_id', grouped: false, identifies: 'anonymous person' },
  { field: 'instanceId', column: 'instance_id', grouped: true, identifies: 'installation or device' },
] as const;

export type EventIdentifier = (typeof EVENT_IDENTIFIERS)[number]['field'];
export type IdentifierColumn = (typeof EVENT_IDENTIFIERS)[number]['column'];
