import type { Pipeline } from './pipeline.ts';

/** The response of GET /users/{id}/organizations and GET /organizations/{id}/users. */
interface MembershipsPage {
  readonly results: readonly {
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

/** Compares which users belong to which organizations with the visible events, both ways. */
export async function wrongMemberships(
  pipeline: Pick<Pipeline, 'get'>,
  events: readonly VisibleEvent[],
): Promise<string[]> {
  const wrong: string[] = [];
  for (const [path, owner, other] of [
    [(id: string) => `/users/${id}/organizations`, 'userId', 'groupId'],
    [(id: string) => `/organizations/${id}/users`, 'groupId', 'userId'],
  ] as const) {
    for (const [id, own] of Map.groupBy(events, (event) => event[owner])) {
      const { body } = await pipeline.get<MembershipsPage>(`${path(encodeURIComponent(id))}?limit=1000`);
      const listed = body.results.map(({ foreignId, foreignUserGroupId, ...seen }) => ({
        id: foreignId ?? foreignUserGroupId ?? '',
        ...seen,
      }));
      const expected = Map.groupBy(own, (event) => event[other]);
      const extra = listed.filter((membership) => !expected.has(membership.id));
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
