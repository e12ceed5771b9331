import { z } from 'zod';
import { NAME_ALTERNATIVES_MAX, NAME_PROPERTIES_MAX, PROPERTY_NAME_CHARACTERS_MAX } from '../../http/http.ts';
import type { EntityKind } from './entity-kinds.ts';

/** What users and organizations are called by, where their workspace says nothing else. */
export const NAMING_DEFAULT = {
  name: [['name'], ['fullName'], ['full_name'], ['firstName', 'lastName'], ['first_name', 'last_name']],
  email: ['email'],
} as const satisfies NamingOfKind;

const property = z
  .string()
  .min(1, 'must not be empty')
  .max(PROPERTY_NAME_CHARACTERS_MAX, `must have at most ${PROPERTY_NAME_CHARACTERS_MAX} characters`);

/** Returns a list that may be empty, and is not long. */
function fewOf<Item extends z.ZodType>(item: Item, max: number) {
  return z.array(item).max(max, `must have at most ${max} items`);
}

const namingOfKind = z
  .strictObject({
    name: fewOf(fewOf(property, NAME_PROPERTIES_MAX).min(1, 'must not be empty'), NAME_ALTERNATIVES_MAX)
      .default(() => NAMING_DEFAULT.name.map((properties) => [...properties]))
      .meta({
        description:
          'Lists of properties. The name is the texts of the first list of which there is one, with spaces between them.',
      }),
    email: fewOf(property, NAME_ALTERNATIVES_MAX)
      .default(() => [...NAMING_DEFAULT.email])
      .meta({ description: 'The e-mail address is the text of the first of these properties that has one.' }),
  })
  .meta({ id: 'NamingProperties' });

/** The body of `PUT /names/properties`: what is left out is as where a workspace says nothing. */
export const namingSchema = z
  .strictObject({
    users: namingOfKind.default(() => namingOfKind.parse({})),
    organizations: namingOfKind.default(() => namingOfKind.parse({})),
  })
  .meta({ id: 'Naming' });

/** Which properties are the names and e-mail addresses of users and organizations, in the order in which they count. */
export interface NamingOfKind {
  readonly name: readonly (readonly string[])[];
  readonly email: readonly string[];
}

/** That of both kinds, by the names of their lists. */
export type Naming = z.output<typeof namingSchema>;

/** What a workspace that says nothing calls its users and organizations. */
export const NAMING: Naming = namingSchema.parse({});

/** Where a naming says what an entity of a kind is called by. */
export const NAMING_OF = { user: 'users', organization: 'organizations' } as const satisfies Record<
  EntityKind,
  keyof Naming
>;

/** What a user or an organization is called; `null` where none of the properties has a text. */
export interface CalledBy {
  readonly name: string | null;
  readonly email: string | null;
}

/** Returns all properties that a naming looks at. */
export function namingProperties({ name, email }: NamingOfKind): readonly string[] {
  return [...new Set([...name.flat(), ...email])];
}

/** Returns what somebody is called whose properties have these texts. */
export function calledBy({ name, email }: NamingOfKind, texts: ReadonlyMap<string, string>): CalledBy {
  const textsOf = (properties: readonly string[]) => properties.flatMap((one) => texts.get(one) ?? []);
  const named = name.map(textsOf).find(({ length }) => length > 0);
  return { name: named?.join(' ') ?? null, email: textsOf(email)[0] ?? null };
}
