import type { Operation } from './load.ts';
import type { Pipeline } from './pipeline.ts';

/** The response of GET /users/{id}/organizations and GET /organizations/{id}/users. */
interface MembershipsPage {
  /** Absent where there is no such user or organization. */
  readonly results?: readonly {
    readonly foreignId?: string;
    readonly foreignUserGroupId?: string;
    readonly firstSeenAt: string;
    readonly lastSeenAt: string;
  }[];
}

/** A visible event, with the times of its first and its last row in milliseconds since 1970. */
interface VisibleEvent {
  readonly userId: string;
  readonly groupId: string;
  readonly first: number;
  readonly last: number;
  readonly rows: number;
  readonly visible: number;
}

/** A pair of a user and an organization that a submission without events names. */
interface Joined {
  readonly userId: string;
  readonly groupId: string;
  /** It must be listed: it was accepted, and the user was not deleted since. Otherwise it may be. */
  readonly must: boolean;
}

function joinedOf(operations: readonly Operation[]): Joined[] {
  return operations.flatMap(({ action, outcome }, index) => {
    if (action.kind !== 'join') return [];
    const { user: userId, group: groupId } = action;
    const deletions = operations.filter((other) => other.action.kind === 'delete' && other.action.user === userId);
    const isDeleted = deletions.some((deletion) => !deletion.clear || operations.indexOf(deletion) > index);
    return [{ userId, groupId, must: outcome === 'accepted' && !isDeleted }];
  });
}

/** Compares which users belong to which organizations with the visible events and with what was done, both ways. */
export async function wrongMemberships(
  pipeline: Pick<Pipeline, 'get'>,
  events: readonly VisibleEvent[],
  operations: readonly Operation[],
): Promise<string[]> {
  const wrong: string[] = [];
  const joined = joinedOf(operations);
  for (const [path, owner, other] of [
    [(id: string) => `/users/${id}/organizations`, 'userId', 'groupId'],
    [(id: string) => `/organizations/${id}/users`, 'groupId', 'userId'],
  ] as const) {
    const ofUsers = events.filter(({ userId }) => userId !== '');
    const eventsOf = Map.groupBy(ofUsers, (event) => event[owner]);
    const joinsOf = Map.groupBy(joined, (pair) => pair[owner]);
    for (const id of new Set([...eventsOf.keys(), ...joinsOf.keys()])) {
      const joins = joinsOf.get(id) ?? [];
      const { body } = await pipeline.get<MembershipsPage>(`${path(encodeURIComponent(id))}?limit=1000`);
      const listed = (body.results ?? []).map(({ foreignId, foreignUserGroupId, ...seen }) => ({
        id: foreignId ?? foreignUserGroupId ?? '',
        ...seen,
      }));
      const expected = Map.groupBy(eventsOf.get(id) ?? [], (event) => event[other]);
      const possible = new Set([...expected.keys(), ...joins.map((pair) => pair[other])]);
      const missing = joins.filter((pair) => pair.must && !listed.some((one) => one.id === pair[other]));
      wrong.push(...missing.map((pair) => `${id} is not listed with ${pair[other]}`));
      const extra = listed.filter((membership) => !possible.has(membership.id));
      wrong.push(...extra.map((membership) => `${id} is listed with ${membership.id}`));
      for (const [otherId, together] of expected) {
        const membership = listed.find((one) => one.id === otherId);
        // Some rows of an event may be hidden, and their times with them.
        const whole = together.filter(({ rows, visible }) => rows === visible);
        const fits =
          membership !== undefined &&
          whole.every(({ first }) => Date.parse(membership.firstSeenAt) <= first) &&
          whole.every(({ last }) => Date.parse(membership.lastSeenAt) >= last);
        if (!fits) wrong.push(`${id} is not listed with ${otherId} as it should be: ${JSON.stringify(membership)}`);
      }
    }
  }
  return wrong;
}
