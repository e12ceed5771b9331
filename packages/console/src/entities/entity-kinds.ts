/** Where users and organizations are in the API, and what they are called. */
export const ENTITY_KINDS = {
  users: { noun: 'user', filter: 'userId', members: 'organizations', membersTitle: 'Organizations' },
  organizations: { noun: 'organization', filter: 'groupId', members: 'users', membersTitle: 'Users' },
} as const;

export type EntityPath = keyof typeof ENTITY_KINDS;

/** One user or organization. */
export interface EntityProps {
  readonly path: EntityPath;
  readonly id: string;
}

/** Returns the parameters by which the events of its visitors count as those of a user. */
export function personParams(path: EntityPath): Readonly<Record<string, string>> {
  return path === 'users' ? { identity: 'linked' } : {};
}

/** Returns its address in the API, without a leading slash. */
export function apiPathOf({ path, id }: EntityProps): string {
  return `${path}/${encodeURIComponent(id)}`;
}
