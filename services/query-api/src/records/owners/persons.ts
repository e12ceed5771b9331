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

/** Returns SQL of events in which `user_id` is the user of the visitor where there is no other. */
export function withPersons(tables: Tables, events: string): string {
  // ClickHouse joins by a number of a fixed length for less than by a text.
  const key = (anonymousId: string) => `sipHash128(${anonymousId})`;
  return `(
  SELECT sent.* REPLACE (if(sent.user_id = '', owners.owner, sent.user_id) AS user_id)
  FROM (${events}) AS sent
  GLOBAL ANY LEFT JOIN (SELECT ${key('anonymous_id')} AS visitor, user_id AS owner FROM ${tables.owners()}) AS owners
    ON owners.visitor = if(sent.user_id = '', ${key('sent.anonymous_id')}, toFixedString('', 16))
)`;
}
