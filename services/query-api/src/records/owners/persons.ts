import type { QueryContext, QueryRunner, Sql, Tables, Visitors } from '../../store/store.ts';
import type { Condition } from '../filters/operators.ts';

// Whose an event is: its user's, or else that of the user whom its visitor belongs to; and where that user became another one, that one's.
// Where statements see that (`tables.areLinked`, `tables.areMerged`), they learn it in one of two ways:
//
// - A condition on the user holds for the events of visitors as well whose user meets it. It reads no other events, so a page costs
//   what its own events cost.
// - Where the user is a value, such as a group, or who goes through a funnel, the users of all visitors are joined to the events.

/** A condition on a user, whose identifier is in `user_id`. It does not hold for the empty one. */
export interface UserCondition extends Sql {
  /** Whether it is about the identifier alone: then the links of visitors are searched by it. */
  readonly isOfIdentifier?: boolean;
  /** Whether it holds for those as well who became somebody that meets it, and for nobody who became somebody else. */
  readonly hasMerged?: boolean;
}

/**
 * Returns the condition that the user of an event meets a condition, or the user of its visitor where it has none.
 *
 * @param visitors SQL of the visitors of the events that are read. Default: they may be all
 */
export function personCondition(tables: Tables, condition: UserCondition, visitors?: Sql): Sql {
  const { sql, params, isOfIdentifier = false, hasMerged = false } = condition;
  if (!tables.areLinked) return { sql, params };
  const ofUser = hasMerged ? sql : becameCondition(tables, sql);
  const linked = isOfIdentifier ? linkedTo(tables, ofUser) : {};
  const owners = tables.owners(visitors ? { visitors: `anonymous_id IN (${visitors.sql})` } : linked);
  return {
    sql: `(${ofUser}) OR user_id = '' AND anonymous_id GLOBAL IN (SELECT anonymous_id FROM ${owners} WHERE ${ofUser})`,
    params: { ...params, ...visitors?.params },
  };
}

/**
 * Returns SQL of the visitors, each with its owner, of the person whom a user became, or else of that user.
 *
 * @param visitors a condition on `anonymous_id`
 */
export function visitorsOfPerson(tables: Tables, user: string, visitors: string): Sql {
  const users = namedUsers(tables, [user]);
  const ofUser = users
    ? 'user_id IN {users:Array(String)}'
    : becameCondition(tables, `user_id = ${becameSql(tables, '{user:String}')}`);
  return {
    sql: `${tables.owners({ visitors, ...linkedTo(tables, ofUser) })} WHERE ${ofUser}`,
    params: users ? { users } : { user },
  };
}

/**
 * Returns the users of the persons whom a condition names: by themselves, or by a user who became them. `undefined` where it is not known which
 * users became others.
 */
export function namedUsers({ namedMerges }: Tables, named: readonly string[]): readonly string[] | undefined {
  if (!namedMerges) return undefined;
  const became = new Map(namedMerges.map(({ merged, person }) => [merged, person]));
  const persons = new Set(named.map((user) => became.get(user) ?? user));
  return [...persons, ...namedMerges.filter(({ person }) => persons.has(person)).map(({ merged }) => merged)];
}

/** A server does not know all merges. */
function linkedTo(tables: Tables, ofUser: string): Visitors {
  return tables.areMerged && tables.onSeveralServers ? {} : { linkedTo: ofUser };
}

/** Returns the condition that whoever a user in `user_id` became, or else that user, meets a condition on `user_id`. */
function becameCondition(tables: Tables, sql: string): string {
  if (!tables.areMerged) return sql;
  return `(${sql}) AND user_id NOT IN ${tables.mergeArrays.merged}
    OR user_id GLOBAL IN (SELECT merged FROM (SELECT merged, person AS user_id FROM ${tables.merges}) WHERE ${sql})`;
}

/** Returns SQL for whom a user became, or else that user. */
export function becameSql(tables: Tables, user: string): string {
  if (!tables.areMerged) return user;
  const { merged, persons } = tables.mergeArrays;
  return `transform(${user}, ${merged}, ${persons}, ${user})`;
}

/** Returns what a condition on a person compares with in place of a user whom it names; undefined: the user itself. */
export function namedPerson(tables: Tables): ((user: string) => string) | undefined {
  return tables.areMerged ? (user) => becameSql(tables, user) : undefined;
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

/** Returns SQL for the number of whoever a user became, or else of that user, whose number is given. */
function numberOfPerson(tables: Tables, number: string): string {
  if (!tables.areMerged) return number;
  const { merged, persons } = tables.mergeArrays;
  const numbersOf = (users: string) => `arrayMap(user -> ${numberOf('user')}, ${users})`;
  return `transform(${number}, ${numbersOf(merged)}, ${numbersOf(persons)}, ${number})`;
}

/** Returns SQL of events with their persons: the user of the visitor where there is no other, or whom that user became. */
export function withPersons(tables: Tables, events: string, read: PersonsRead): string {
  const visitor = `if(user_id = '' AND anonymous_id != '', ${NUMBER_OF_VISITOR}, 0) AS visitor_number`;
  const [numbers, owner, persons] =
    read === 'named'
      ? [visitor, 'user_id', `* REPLACE (${becameSql(tables, 'if(visitor_number = 0, user_id, owner)')} AS user_id)`]
      : [
          `${visitor}, if(user_id = '', 0, ${numberOf('user_id')}) AS user_number`,
          numberOf('user_id'),
          `*, ${numberOfPerson(tables, 'if(visitor_number = 0, user_number, owner)')} AS person_number`,
        ];
  return `(
  SELECT ${persons}
  FROM (SELECT *, ${numbers} FROM (${events})) AS sent
  GLOBAL ANY LEFT JOIN (SELECT ${NUMBER_OF_VISITOR} AS visitor_number, ${owner} AS owner FROM ${tables.owners()}) AS owners
    USING (visitor_number)
)`;
}

/** Reads whom a user became; `undefined`: it became nobody else. */
export async function readPerson(
  queryRunner: Pick<QueryRunner, 'all' | 'identities'>,
  user: string,
  context: QueryContext,
): Promise<string | undefined> {
  const { areMerged } = await queryRunner.identities(context);
  if (!areMerged) return undefined;
  const [row] = await queryRunner.all({
    ...{ kind: 'owners', ...context },
    statement: (tables) => ({
      sql: `SELECT person FROM ${tables.merges} WHERE merged = {user:String}`,
      params: { user },
    }),
  });
  return row?.[0] as string | undefined;
}
