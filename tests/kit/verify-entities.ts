import type { Action, Operation, SentEvent } from './load.ts';
import type { Pipeline } from './pipeline.ts';
import type { EntityRecord } from './records.ts';

/** Between when an event's timestamp lies, as far as one operation tells. */
export function timestampsOf({ timestamp }: SentEvent, firstAt: number, { endedAt, clear }: Operation) {
  if (timestamp !== undefined) return { from: timestamp, to: timestamp };
  // An attempt that was not heard of may be received at any later time.
  return { from: firstAt, to: clear ? endedAt : Date.now() };
}

/** The operations that concern each user, or each organization, in order. */
export function ofEntities(operations: readonly Operation[], kind: 'user' | 'organization'): Map<string, Operation[]> {
  const found = new Map<string, Operation[]>();
  for (const operation of operations) {
    const id = entityOf(operation.action, kind);
    if (id === undefined) continue;
    const ofEntity = found.get(id);
    if (ofEntity) ofEntity.push(operation);
    else found.set(id, [operation]);
  }
  return found;
}

function entityOf(action: Action, kind: 'user' | 'organization'): string | undefined {
  switch (action.kind) {
    case 'events':
    case 'join':
      return kind === 'user' ? action.user || undefined : action.group;
    case 'set':
      return kind === action.entity ? action.id : undefined;
    case 'set-once':
    case 'delete':
      return kind === 'user' ? action.user : undefined;
  }
}

export async function wrongEntities(
  pipeline: Pick<Pipeline, 'get'>,
  path: string,
  entities: ReadonlyMap<string, readonly Operation[]>,
  cutOff: ReadonlySet<string>,
): Promise<string[]> {
  const wrong: string[] = [];
  for (const [id, operations] of entities) {
    const { status, body } = await pipeline.get<EntityRecord>(`${path}/${encodeURIComponent(id)}`);
    if (status !== 200 && status !== 404) wrong.push(`${id}: ${status}`);
    const entity = status === 200 ? body : undefined;
    wrong.push(...wrongProperties(id, entity, operations), ...wrongSightings(id, entity, operations, cutOff));
    if (entity && isGone(operations)) wrong.push(`${id} was deleted, but is there`);
  }
  return wrong;
}

function wrongProperties(id: string, entity: EntityRecord | undefined, operations: readonly Operation[]): string[] {
  const sets = operations.flatMap(({ action }) =>
    action.kind === 'set' || action.kind === 'set-once' ? [action.property] : [],
  );
  const properties = new Set([...sets, ...Object.keys(entity?.properties ?? {})]);
  return [...properties].flatMap((property) => {
    const possible = possibleValues(property, operations);
    if (!possible) return [];
    const value = entity?.properties[property] as number | undefined;
    return possible.has(value) ? [] : [`${id}: ${property} is ${value}, not ${[...possible].join(' or ')}`];
  });
}

/**
 * Returns what a property may be at the end: a number, or `undefined` when it is not set.
 *
 * @param slackMs how far the time of a change may lie outside of its operation. Default 1
 * @returns undefined where that is not known
 */
export function possibleValues(
  property: string,
  operations: readonly Operation[],
  slackMs = 1,
): Set<number | undefined> | undefined {
  return decidesOnce(operations) ? valuesOnce(property, operations, slackMs) : valuesSet(property, operations);
}

function valuesSet(property: string, operations: readonly Operation[]): Set<number | undefined> {
  let possible = new Set<number | undefined>([undefined]);
  // What may take effect at any later time.
  const late = new Set<number | undefined>();
  for (const { action, outcome, clear } of operations) {
    if (action.kind === 'events' || action.kind === 'join' || action.kind === 'set-once') continue;
    if (action.kind === 'set' && action.property !== property) continue;
    const value = action.kind === 'set' ? (action.value ?? undefined) : undefined;
    if (!clear) late.add(value);
    possible = outcome === 'accepted' ? new Set([value]) : possible.add(value);
  }
  return possible.union(late);
}

/** Whether something was set once, or deleted by its time: only to users to whom nothing else is done. */
function decidesOnce(operations: readonly Operation[]): boolean {
  return operations.some(
    ({ action }) => action.kind === 'set-once' || (action.kind === 'delete' && action.before !== undefined),
  );
}

const WEEK_MS = 604_800_000;

/**
 * Returns what a property is at the end. Of what no deletion covers, the last that was set or removed decides, otherwise what
 * was set once: first, of a user who was never deleted, and last in the first week since then of one who was.
 *
 * @returns undefined where times do not say it: where a response did not come, or a change was under way at the time of a deletion
 */
function valuesOnce(
  property: string,
  operations: readonly Operation[],
  slackMs: number,
): Set<number | undefined> | undefined {
  if (operations.some(({ clear, outcome }) => !clear || outcome !== 'accepted')) return undefined;
  const deletions = operations.flatMap(({ action }) => (action.kind === 'delete' ? [action.before ?? 0] : []));
  const deletedMs = Math.max(0, ...deletions);
  const changes = operations.filter(
    ({ action }) => (action.kind === 'set' || action.kind === 'set-once') && action.property === property,
  );
  if (changes.some(({ at, endedAt }) => at <= deletedMs + slackMs && deletedMs - slackMs <= endedAt)) return undefined;
  const left = changes.filter(({ at }) => at > deletedMs);
  const set = left.findLast(({ action }) => action.kind === 'set');
  if (set) return new Set([valueSetBy(set)]);
  if (deletions.length === 0) return new Set([valueSetBy(left[0])]);
  const weekOf = (ms: number) => Math.floor(ms / WEEK_MS);
  if (left.some(({ at, endedAt }) => weekOf(at) !== weekOf(endedAt))) return undefined;
  const [first] = left;
  return new Set([valueSetBy(left.findLast(({ at }) => first && weekOf(at) === weekOf(first.at)))]);
}

function valueSetBy(operation: Operation | undefined): number | undefined {
  const action = operation?.action;
  return action?.kind === 'set' || action?.kind === 'set-once' ? (action.value ?? undefined) : undefined;
}

/** Returns whether the last that was done to a user is a deletion, and nothing that was done before can take effect later. */
export function isGone(operations: readonly Operation[]): boolean {
  const last = operations.at(-1)?.action;
  return last?.kind === 'delete' && last.before === undefined && operations.every(({ clear }) => clear);
}

/** Seen first and last: exact where every answer came, within bounds where some did not. Not after a deletion. */
function wrongSightings(
  id: string,
  entity: EntityRecord | undefined,
  operations: readonly Operation[],
  cutOff: ReadonlySet<string>,
): string[] {
  if (operations.some(({ action }) => action.kind === 'delete')) return [];
  const accepted = operations.filter(({ outcome }) => outcome === 'accepted');
  const certain = seenBetween(accepted, ({ key }) => !cutOff.has(key));
  const possible = seenBetween(operations, () => true);
  if (certain.earliest > certain.latest) return [];
  if (!entity) return [`${id} is missing`];
  const first = Date.parse(entity.firstSeenAt);
  const last = Date.parse(entity.lastSeenAt);
  const fits =
    first <= certain.firstAtMost &&
    first >= possible.earliest &&
    last >= certain.lastAtLeast &&
    last <= possible.latest;
  return fits ? [] : [`${id} was seen from ${entity.firstSeenAt} to ${entity.lastSeenAt}`];
}

/** When operations say that somebody was seen: events at their timestamps, a change between its begin and its end. */
function seenBetween(operations: readonly Operation[], counts: (event: SentEvent) => boolean) {
  const bounds = { earliest: Infinity, firstAtMost: Infinity, lastAtLeast: -Infinity, latest: -Infinity };
  for (const operation of operations) {
    const { action, at, endedAt, clear } = operation;
    // An attempt that was not heard of may take effect at any later time.
    const spans =
      action.kind === 'events'
        ? action.events.filter(counts).map((event) => timestampsOf(event, action.firstAt, operation))
        : [{ from: at, to: clear ? endedAt : Date.now() }];
    for (const { from, to } of spans) {
      bounds.earliest = Math.min(bounds.earliest, from);
      bounds.firstAtMost = Math.min(bounds.firstAtMost, to);
      bounds.lastAtLeast = Math.max(bounds.lastAtLeast, from);
      bounds.latest = Math.max(bounds.latest, to);
    }
  }
  return bounds;
}
