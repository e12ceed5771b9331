import { Problem } from '@sluice/shared/http/problem';

/** The kinds of entities: where each is served, and what it is called there and in OpenAPI. */
export const ENTITY_ROUTES = {
  user: { path: '/users', idName: 'foreignId', schema: 'User', tag: 'users', noun: 'a user', exampleId: 'jane' },
  organization: {
    path: '/organizations',
    idName: 'foreignUserGroupId',
    schema: 'Organization',
    tag: 'organizations',
    noun: 'an organization',
    exampleId: 'acme',
  },
} as const;

/** As the column `kind` holds it. */
export type EntityKind = keyof typeof ENTITY_ROUTES;

export type EntityRoute = (typeof ENTITY_ROUTES)[EntityKind];

export const ENTITY_KINDS = Object.keys(ENTITY_ROUTES) as readonly EntityKind[];

/** The kind of the memberships of a kind: a user belongs to organizations, and an organization has users. */
export const OTHER_KIND = { user: 'organization', organization: 'user' } as const satisfies Record<
  EntityKind,
  EntityKind
>;

/** Returns the problem of a path that names a user or an organization that does not exist. */
export function noSuchEntity(kind: EntityKind): Problem {
  return new Problem('not_found', `There is no such ${kind}.`);
}
