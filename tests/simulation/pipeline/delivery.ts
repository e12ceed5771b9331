import { type ExpectedEvent, expectedEvents } from '../../kit/expected-events.ts';
import type { Operation } from '../../kit/load.ts';
import { isGone, ofEntities, possibleValues } from '../../kit/verify-entities.ts';
import { currentChange, isHidden, rowsOfUser, type StoredEvent, type Tables, userKey } from '../clickhouse/tables.ts';
import type { Client } from '../ingest/client.ts';

/** How far the version of a row may be from its operation, in milliseconds: as ingest/oracle.ts checks it. */
const VERSION_MS_MAX = 50;

/**
 * Compares what the clients were told with what is stored, as tests of real pipelines do (tests/kit): what was accepted
 * is there once, nothing else is, users and organizations are the fold of their operations, deleted users are hidden.
 *
 * @returns what is wrong
 */
export function wrongDelivery(clients: readonly Client[], tables: Tables): string[] {
  return clients.flatMap(({ workspace, operations, uuids }) => [
    ...wrongEvents(expectedEvents({ operations, accepted: uuids }, new Set()), visibleEvents(workspace, tables)),
    ...wrongProperties(workspace, operations, tables),
    ...visibleDeleted(workspace, operations, tables),
  ]);
}

function visibleEvents(workspace: string, tables: Tables): Map<string, StoredEvent[]> {
  const visible = tables.events.filter((event) => event.workspace_id === workspace && !isHidden(tables, event));
  return Map.groupBy(visible, ({ properties }) => String(properties?.['key']));
}

function wrongEvents(
  expected: ReadonlyMap<string, ExpectedEvent>,
  visible: ReadonlyMap<string, readonly StoredEvent[]>,
): string[] {
  return [...expected].flatMap(([key, event]) => {
    const stored = visible.get(key) ?? [];
    const [first] = stored;
    if (!first) return event.must ? [`${key} was accepted and is lost`] : [];
    if (stored.length > 1) return [`${key} is visible twice`];
    if (!event.may) return [`${key} is visible, though its user was deleted or nobody sent it`];
    const isOfUser = event.shared ? event.users.has(first.user_id) : event.user === first.user_id;
    const isSame = isOfUser && event.group === first.group_id && first.uuid === (event.uuid ?? first.uuid);
    return isSame ? [] : [`${key} is not what was sent`];
  });
}

function wrongProperties(workspace: string, operations: readonly Operation[], tables: Tables): string[] {
  return (['user', 'organization'] as const).flatMap((kind) =>
    [...ofEntities(operations, kind)].flatMap(([id, ofEntity]) => {
      const sets = ofEntity.flatMap(({ action }) =>
        action.kind === 'set' || action.kind === 'set-once' ? [action.property] : [],
      );
      return [...new Set(sets)].flatMap((property) => {
        const possible = possibleValues(property, ofEntity, VERSION_MS_MAX);
        const value = storedValue(workspace, kind, id, property, tables);
        return !possible || possible.has(value)
          ? []
          : [`${property} of ${id} is ${value}, not ${[...possible].join(' or ')}`];
      });
    }),
  );
}

function storedValue(workspace: string, kind: string, id: string, property: string, tables: Tables) {
  const value = currentChange(tables, { workspace, kind, id, property })?.value;
  return value === undefined ? undefined : Number(value);
}

function visibleDeleted(workspace: string, operations: readonly Operation[], tables: Tables): string[] {
  return [...ofEntities(operations, 'user')].flatMap(([user, ofUser]) => {
    if (!isGone(ofUser)) return [];
    const deletedAt = tables.deletions.get(userKey(workspace, user)) ?? 0;
    const isSeen = rowsOfUser(tables, userKey(workspace, user)).some(({ version }) => version > deletedAt);
    return isSeen ? [`${user} was deleted and is visible`] : [];
  });
}
