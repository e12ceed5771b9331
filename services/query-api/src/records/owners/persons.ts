import type { Sql, Tables } from '../../store/store.ts';
import type { Condition } from '../filters/operators.ts';

// Whose an event is: its user's, or else that of the user whom its visitor belongs to. Where statements see that (`tables.areLinked`),
// they learn it in one of two ways:
//
// - A condition on the user holds for the events of visitors as well whose user meets it. It reads no other events, so a page costs
//   what its own events cost.
// - Where the user is a value, such as a group, or who goes through a funnel, the users of all visitors are joined to the events.

/** A condition on a user, whose identifier is in `user_id`. It does not hold for the empty one. */
export interface UserCondition extends Sql {
  /** Whether it is about the identifier alone: then the links of visitors are searched by it. */
  readonly isOfIdentifier?: boolean;
}

/** Returns the condition that the user of an event meets a condition, or the user of its visitor where it has none. */
export function personCondition(tables: Tables, { sql, params, isOfIdentifier = false }: UserCondition): Sql {
  if (!tables.areLinked) return { sql, params };
  const owners = tables.owners(isOfIdentifier ? { linkedTo: sql } : {});
  return {
    sql: `(${sql}) OR user_id = '' AND anonymous_id GLOBAL IN (SELECT anonymous_id FROM ${owners} WHERE ${sql})`,
    params,
  };
}

/** Whether a condition on an identifier holds where there is none. */
export function matchesNobody({ operator, value }: Condition): boolean {
  switch (operator) {
    case 'eq':
      return value === '';
    case 'ne':
      return value !== '';
    case 'in':
      return value.includes('');
    case 'exists':
      return !value;
    default:
      return false;
  }
}

/**
 * What a statement needs of the persons of events: their users, as `user_id`, or only to tell them apart, by numbers. That costs less: no
 * texts are joined, copied or compared.
 */
export type PersonsRead = 'named' | 'told apart';

/** SQL that tells persons apart. */
export interface PersonSql {
  /** Of an event without a person: any. */
  readonly key: string;
  /** Whether an event has a person. */
  readonly exists: string;
  /** A number of the person, or else of the visitor. 0: of neither. */
  readonly numberOfVisitors: string;
}

/**
 * A number in place of an identifier. Of a million of them two are the same once in 37 million times. Who finds two identifiers with
 * one number gains nothing: whoever may send events may as well name the users and visitors of others.
 */
const numberOf = (identifier: string) => `xxh3(${identifier})`;

/** The same of a visitor, so that it is not that of a user with the same identifier. */
const NUMBER_OF_VISITOR = `bitNot(${numberOf('anonymous_id')})`;

/** Persons by the column `user_id`. */
export const PERSONS_BY_NAME: PersonSql = {
  key: 'user_id',
  exists: "user_id != ''",
  numberOfVisitors: `multiIf(user_id != '', ${numberOf('user_id')}, anonymous_id != '', ${NUMBER_OF_VISITOR}, 0)`,
};

/** Persons by the columns that {@link withPersons} adds to tell them apart. */
export const PERSONS_BY_NUMBER: PersonSql = {
  key: 'person_number',
  exists: 'person_number != 0',
  numberOfVisitors: 'if(person_number != 0, person_number, visitor_number)',
};

/** Returns SQL of events with their persons: the user of the visitor where there is no other. */
export function withPersons(tables: Tables, events: string, read: PersonsRead): string {
  const visitor = `if(user_id = '' AND anonymous_id != '', ${NUMBER_OF_VISITOR}, 0) AS visitor_number`;
  const [numbers, owner, persons] =
    read === 'named'
      ? [visitor, 'user_id', '* REPLACE (if(visitor_number = 0, user_id, owner) AS user_id)']
      : [
          `${visitor}, if(user_id = '', 0, ${numberOf('user_id')}) AS user_number`,
          numberOf('user_id'),
          '*, if(visitor_number = 0, user_number, owner) AS person_number',
        ];
  return `(
  SELECT ${persons}
  FROM (SELECT *, ${numbers} FROM (${events})) AS sent
  GLOBAL ANY LEFT JOIN (SELECT ${NUMBER_OF_VISITOR} AS visitor_number, ${owner} AS owner FROM ${tables.owners()}) AS owners
    USING (visitor_number)
)`;
}
