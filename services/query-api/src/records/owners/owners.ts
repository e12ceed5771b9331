import { countsSql, DECIDING_VALUE } from '@sluice/shared/clickhouse/property-versions';
import { endOfDay } from '@sluice/shared/text/timestamp';
import { z } from 'zod';
import { BoundParameters, lastDeletionOf, type Sql, sightings, type Tables } from '../../store/store.ts';
import {
  candidateConditions,
  entityCondition,
  placesByProperty,
  plainTexts,
  propertyIn,
} from '../filters/entity-condition.ts';
import { COMPARISONS, type Comparison, type OperandKind } from '../filters/operators.ts';
import { timestampParameter } from '../filters/parameter-schemas.ts';
import { COMPARISON_SQL } from '../filters/property-condition.ts';
import { type PropertyFilter, toPositive } from '../filters/property-filter.ts';
import { propertyValue } from '../filters/property-value.ts';
import { becameSql, personCondition, type UserCondition } from './persons.ts';

// Whose events: the user and the organization of an event, and what is known about them now.
//
// A filter asks whether the owner of an event is in a set, which ClickHouse computes once for a statement: the owners whose
// property matches. Where few owners can match, the index of values names these candidates, and only their registers are
// folded; their events are found by an index as well. Where many can, the registers of all owners that have the property are
// folded, and each event is looked up in the set. A group is the value in a table of all owners, which is joined to the
// events.
//
// Events and their owners lie on different servers, so sets and tables are GLOBAL: computed once, and sent to each server.

/** The owners of an event: the column of events that has their identifier. The kind is that of their rows. */
export const OWNERS = {
  user: { column: 'user_id' },
  organization: { column: 'group_id' },
} as const;

export type Owner = keyof typeof OWNERS;

export const OWNER_KINDS = Object.keys(OWNERS) as readonly Owner[];

/** The properties of an owner, as filters and groups name them: `organization.properties.<name>`. */
export type OwnerDocument = `${Owner}.properties`;

export const OWNER_DOCUMENTS = OWNER_KINDS.map((owner): OwnerDocument => `${owner}.properties`);

/** When an owner was seen, as filters name it: `user.firstSeenAt`. */
export type OwnerTime = `${Owner}.${'firstSeenAt' | 'lastSeenAt'}`;

export const OWNER_TIMES = OWNER_KINDS.flatMap((owner): OwnerTime[] => [`${owner}.firstSeenAt`, `${owner}.lastSeenAt`]);

/** Returns the owner that a document or a time is of. */
export function ownerOf(name: OwnerDocument | OwnerTime): Owner {
  return name.startsWith('user.') ? 'user' : 'organization';
}

export function isOwnerDocument(document: string): document is OwnerDocument {
  return (OWNER_DOCUMENTS as readonly string[]).includes(document);
}

export function isOwnerTime(field: string): field is OwnerTime {
  return (OWNER_TIMES as readonly string[]).includes(field);
}

/** What owners are read from. */
export interface OwnerSource {
  readonly tables: Tables;
  /** The condition that the events of pending deletions meet, if there are any. */
  readonly hidden: Sql | undefined;
  /** The events that are read, where they are not all of a range without end. Default: they may be all. */
  readonly within?: EventsRead;
  /** Whether `user_id` is the person of an event already. Default: it is what was sent. */
  readonly hasPersons?: boolean;
}

/** Some events. */
export interface EventsRead {
  /** Returns SQL of the identifiers in a column. */
  readonly identifiers: (column: string) => Sql;
  /** Whether the identifiers are so few that no index need look for other candidates. */
  readonly areFew: boolean;
}

/**
 * Returns the condition that the owner of an event matches a property filter. Events without owner match `ne` and
 * `exists=false`.
 *
 * @param prefix begins the names of its parameters: it tells the filters of one query apart
 * @param column has the identifier of the owner. Default: that of events
 */
export function ownerPropertyCondition(
  source: OwnerSource,
  owner: Owner,
  requested: PropertyFilter,
  prefix: string,
  column: string = OWNERS[owner].column,
): Sql {
  const { filter, negated } = toPositive(requested);
  const condition = entityCondition(filter, prefix);
  const candidates = candidatesOf(source, owner, filter, { names: condition.names, prefix });
  const current = currentValues(source.tables, owner, condition.names, candidates);
  const owners = `SELECT id FROM (${current}) WHERE value != '' AND ${condition.matches}`;
  return {
    sql: negated
      ? `identity(${column}) GLOBAL NOT IN (${owners})`
      : `${candidates.searched(column)} GLOBAL IN (${owners})`,
    params: { ...condition.params, ...candidates.params },
  };
}

/** As {@link ownerPropertyCondition}, of the person of an event. */
export function personPropertyCondition(source: OwnerSource, requested: PropertyFilter, prefix: string): Sql {
  const { filter, negated } = toPositive(requested);
  const { sql, params } = ofPersons(source, (from) => ownerPropertyCondition(from, 'user', filter, prefix));
  return { sql: negated ? `NOT (${sql})` : sql, params };
}

/**
 * Returns a condition on the persons of events.
 *
 * @param conditionOn returns it for users, who are read from a source
 */
export function ofPersons(source: OwnerSource, conditionOn: (source: OwnerSource) => UserCondition): Sql {
  const { tables, hidden, within, hasPersons } = source;
  if (!tables.areLinked || hasPersons) return conditionOn(source);
  // A server has the links of its visitors, and not all of their events.
  if (!within?.areFew || tables.onSeveralServers) return personCondition(tables, conditionOn({ tables, hidden }));
  const visitors = within.identifiers('anonymous_id');
  return personCondition(tables, conditionOn({ tables, hidden, within: personsWithin(tables, within) }), visitors);
}

/** Returns the same few events, whose users are the persons: the users of visitors are not among those that the events name. */
function personsWithin(tables: Tables, { identifiers, areFew }: EventsRead): EventsRead {
  const users = identifiers('user_id');
  const visitors = identifiers('anonymous_id');
  const owners = tables.owners({ visitors: `anonymous_id IN (${visitors.sql})` });
  const persons = {
    sql: `SELECT ${becameSql(tables, 'user_id')} FROM (${users.sql} UNION ALL SELECT user_id FROM ${owners})`,
    params: { ...users.params, ...visitors.params },
  };
  return { areFew, identifiers: (column) => (column === OWNERS.user.column ? persons : identifiers(column)) };
}

/** The owners that can match a filter, or of whom the values are wanted. */
interface Candidates {
  /** Names that the conditions have, each with the SQL that it stands for. */
  readonly names: readonly string[];
  /** The condition that the identifier `id` is one of them. */
  readonly among: string;
  /** A condition on `user_id` that holds for all of them. */
  readonly amongUsers: string;
  /** Returns the column of events in the form in which a set of them is searched fastest. */
  searched(column: string): string;
  readonly params: Sql['params'];
}

/** ClickHouse uses no index for this. */
const withoutIndex = (column: string) => `identity(${column})`;

const EVERYONE: Candidates = { names: [], among: 'true', amongUsers: 'true', searched: withoutIndex, params: {} };

/** Up to so many rows that can match, the index names candidates. */
export const FEW = 1_000;

function candidatesOf(
  { tables, within }: OwnerSource,
  owner: Owner,
  filter: PropertyFilter,
  { names, prefix }: { readonly names: readonly string[]; readonly prefix: string },
): Candidates {
  const read = within?.identifiers(OWNERS[owner].column);
  const isRead = (column: string) => (read ? `${column} GLOBAL IN (${read.sql})` : 'true');
  if (within?.areFew) {
    return {
      names: [],
      among: isRead('id'),
      amongUsers: isRead('user_id'),
      searched: withoutIndex,
      params: read?.params ?? {},
    };
  }
  const { sql, params } = candidateRows(tables, owner, filter, prefix, names);
  // A scalar, which ClickHouse reads once: before it plans the rest, so that one of the two branches is all that it plans.
  const found = `(SELECT (count(), groupArray(id)) FROM (${sql}))`;
  return {
    names: [`${found} AS found`],
    among: `if(found.1 > ${FEW}, ${isRead('id')}, id IN tupleElement(found, 2))`,
    amongUsers: `(found.1 > ${FEW} OR user_id IN tupleElement(found, 2))`,
    // By an index, ClickHouse looks for each identifier of a set by itself, which is slow for many.
    searched: (column) => `if(${found}.1 > ${FEW}, ${withoutIndex(column)}, ${column})`,
    params: { ...params, ...read?.params },
  };
}

/**
 * Returns the query for the rows of owners that can match a filter, {@link FEW} and one more at most.
 *
 * @param names placeholders of the names of the properties, where these have parameters already
 */
function candidateRows(
  tables: Tables,
  owner: Owner,
  filter: PropertyFilter,
  prefix: string,
  names: readonly string[],
): Sql {
  const { indexed, findsValue, exact, params } = candidateConditions(filter, prefix, {
    workspace: tables.workspace,
    kind: `'${owner}'`,
  });
  // The condition of the index comes last: it is for the index, and few rows reach it. Where it finds the value, it decides, which
  // costs less to plan.
  return {
    sql: `
      SELECT id FROM ${tables.entityProperties}
      WHERE kind = '${owner}' AND ${findsValue ? propertyIn(names) : exact} AND ${indexed}
      LIMIT ${FEW + 1}`,
    params,
  };
}

/** Returns the same query by itself; `undefined` where the index does not find the value. */
export function fewCandidates(owner: Owner, filter: PropertyFilter): ((tables: Tables) => Sql) | undefined {
  if (!plainTexts(filter)) return undefined;
  const { names, params } = entityCondition(filter, '');
  return (tables) => {
    const candidates = candidateRows(tables, owner, filter, '', names);
    return { sql: candidates.sql, params: { ...params, ...candidates.params } };
  };
}

/**
 * Returns SQL for the JSON of some properties of candidates: `id`, `property` and `value`, which is the empty string where a
 * property was removed. What a deleted user had before the deletion does not count.
 *
 * @param names placeholders of the names of the properties
 */
function currentValues(tables: Tables, owner: Owner, names: readonly string[], candidates: Candidates): string {
  const folded = foldedValues(tables, owner, names, candidates);
  // Groups of one text are cheaper than groups of two.
  return names.length === 1 ? `SELECT id, ${names[0]} AS property, value FROM (${folded})` : folded;
}

/** The same; of one property without its name. */
function foldedValues(tables: Tables, owner: Owner, names: readonly string[], candidates: Candidates): string {
  const isOne = names.length === 1;
  const deleted = owner === 'user' ? [`${lastDeletionOf(tables, 'id', candidates.amongUsers)} AS deleted`] : [];
  const aliases = [...candidates.names, ...deleted];
  const conditions = [
    `kind = '${owner}'`,
    propertyIn(names),
    candidates.among,
    ...(owner === 'user' ? [countsSql('deleted')] : []),
  ];
  return `
    ${aliases.length === 0 ? '' : `WITH ${aliases.join(',\n    ')}`}
    SELECT id,${isOne ? '' : ' property,'} ${DECIDING_VALUE} AS value
    FROM ${tables.entityProperties}
    WHERE ${conditions.join(' AND ')}
    GROUP BY id${isOne ? '' : ', property'}
  `;
}

/** How to find those of some owners whose property matches a filter in its positive form. */
export interface OwnersAmong {
  /**
   * Returns the query for those that may match: each with whether it does. It costs much less than `matching`; `undefined` where the
   * filter leaves nearly all open.
   */
  readonly likely: ((tables: Tables, ids: readonly string[]) => Sql) | undefined;
  /** Returns the query for those that match. */
  readonly matching: (tables: Tables, ids: readonly string[]) => Sql;
}

/** Returns the queries about some owners, of which there are as many as fit into one. */
export function ownersAmong(owner: Owner, filter: PropertyFilter): OwnersAmong {
  const among = (ids: readonly string[]): Candidates => ({
    names: [],
    among: 'id IN {ids:Array(String)}',
    amongUsers: 'user_id IN {ids:Array(String)}',
    searched: withoutIndex,
    params: { ids },
  });
  const condition = entityCondition(filter, '');
  const texts = plainTexts(filter);
  return {
    likely:
      texts &&
      ((tables, ids) => {
        const parameters = new BoundParameters('l');
        const folded = foldedValues(tables, owner, [parameters.text(filter.name)], among(ids));
        const values = parameters.texts(texts);
        return {
          sql: `SELECT id, value IN ${values} FROM (${folded}) WHERE multiSearchAny(value, ${values})`,
          params: { ...parameters.params, ids },
        };
      }),
    matching: (tables, ids) => ({
      sql: `SELECT id FROM (${currentValues(tables, owner, condition.names, among(ids))}) WHERE value != '' AND ${condition.matches}`,
      params: { ...condition.params, ids },
    }),
  };
}

/** The columns of `entities` with the times of an owner, and how the rows of one are put together. */
const TIMES = {
  firstSeenAt: { column: 'first_seen_at', aggregate: 'min' },
  lastSeenAt: { column: 'last_seen_at', aggregate: 'max' },
} as const;

/** A date alone is its first millisecond where the comparison is with its beginning, and else its last one. */
export const OWNER_TIME: OperandKind = {
  operators: COMPARISONS,
  item: z.string(),
  typed: false,
  compared: (operator) => timestampParameter(operator === 'lt' || operator === 'gte' ? (dayMs) => dayMs : endOfDay, ''),
};

/** A comparison of a time, in milliseconds. */
export interface TimeCondition {
  readonly operator: Comparison;
  readonly value: number;
}

/**
 * Returns the condition that the owner of an event was seen first or last at a time that meets a comparison. Events without
 * owner never match.
 *
 * @param name of its parameter
 * @param column as that of {@link ownerPropertyCondition}
 */
export function ownerTimeCondition(
  source: OwnerSource,
  time: OwnerTime,
  { operator, value }: TimeCondition,
  name: string,
  column = OWNERS[ownerOf(time)].column as string,
): Sql {
  const owner = ownerOf(time);
  const seen = TIMES[time.endsWith('.firstSeenAt') ? 'firstSeenAt' : 'lastSeenAt'];
  const compared = `${seen.aggregate}(seen) ${COMPARISON_SQL[operator]} fromUnixTimestamp64Milli({${name}:Int64})`;
  const owners = `SELECT id FROM (${seenTimes(source, owner, seen.column)}) GROUP BY id HAVING ${compared}`;
  return { sql: `${withoutIndex(column)} GLOBAL IN (${owners})`, params: { [name]: value } };
}

/**
 * SQL for when owners were seen, several times for each: `id` and `seen`. A user who came back after a deletion was seen since
 * then: rows that begin after the last deletion say when, and until the erasure also the events and sightings themselves
 * (entities-reader.ts).
 */
function seenTimes({ tables, hidden }: OwnerSource, owner: Owner, column: string): string {
  const stored = `SELECT id, ${column} AS seen FROM ${tables.entities} WHERE kind = '${owner}'`;
  if (owner === 'organization') return stored;
  const lastOf = (id: string) => lastDeletionOf(tables, id, 'true');
  const begin = 'toInt64(toUInt64OrZero(other_id))';
  const current = `
    WITH ${lastOf('id')} AS deleted
    ${stored} AND (deleted = 0 OR version > deleted AND ${begin} >= deleted)`;
  if (!hidden) return current;
  const mixed = `
      WITH ${lastOf('id')} AS deleted
      SELECT id FROM ${tables.entities} WHERE kind = 'user' AND deleted > 0 AND version > deleted AND ${begin} < deleted`;
  return `${current}
    UNION ALL
    SELECT id, fromUnixTimestamp64Milli(seen_ms, 'UTC') AS seen
    FROM (${sightings(tables, `user_id GLOBAL IN (${mixed})`)})
    WHERE version > ${lastOf('id')}`;
}

/** A property of the owner of an event. */
export interface OwnerProperty {
  readonly owner: Owner;
  readonly property: string;
}

/** Returns the column of {@link ownerValue}: as {@link propertyValue} of a property of events. */
export function ownerValueColumn(prefix: string): string {
  return `${prefix}_value`;
}

/**
 * Returns SQL that puts the value of a property of its owner beside each event. It follows the table of events in a FROM,
 * which needs an alias.
 *
 * @param prefix begins the names of its parameters and columns: it tells the values of one query apart
 */
export function ownerValue(tables: Tables, { owner, property }: OwnerProperty, prefix: string): Sql {
  const parameters = new BoundParameters(prefix);
  const places = [...placesByProperty(property)];
  const names = places.map(([name]) => parameters.text(name));
  const found = places.map(([, inside]) => propertyValue('value', property, parameters, inside));
  const current = currentValues(tables, owner, names, EVERYONE);
  const [key, column] = [`${prefix}_key`, ownerValueColumn(prefix)];
  // ClickHouse joins by a number of a fixed length for less than by a text.
  const keyOf = (identifier: string) => `sipHash128(${identifier})`;
  // Where a name can mean several properties, the first one that has a value counts, longer names first.
  const values =
    names.length === 1
      ? `SELECT ${keyOf('id')} AS ${key}, ${found[0]} AS ${column} FROM (${current})`
      : `SELECT ${keyOf('id')} AS ${key}, argMin(found, place) AS ${column}
      FROM (
        SELECT id, indexOf([${names.join(', ')}], property) AS place, [${found.join(', ')}][place] AS found
        FROM (${current})
      )
      WHERE found != ''
      GROUP BY id`;
  return {
    sql: `GLOBAL ANY LEFT JOIN (${values}) AS ${prefix}_owners ON ${key} = ${keyOf(OWNERS[owner].column)}`,
    params: parameters.params,
  };
}
