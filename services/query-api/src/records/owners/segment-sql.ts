import {
  BoundParameters,
  lastDeletionOf,
  type QuerySettings,
  type Sql,
  shownConditions,
  where,
} from '../../store/store.ts';
import type { PropertyFilter } from '../filters/property-filter.ts';
import {
  OWNERS,
  type Owner,
  type OwnerSource,
  ofPersons,
  ownerPropertyCondition,
  ownerTimeCondition,
  type TimeCondition,
} from './owners.ts';
import { withPersons } from './persons.ts';
import { type Behaviour, readSegments, type Segment, type SegmentFilter } from './segment.ts';

// Who is in a segment. Each condition is a set of owners, as those of filters by owners are.

const DAY_MS = 86_400_000;

/**
 * Returns the condition that who is in a column of their identifiers is in the segments of a filter. Who has no identifier is in
 * none.
 *
 * @param prefix begins the names of its parameters: it tells the filters of one query apart
 * @param columnOf returns the column. Default: that of events
 */
export function segmentCondition(
  source: OwnerSource,
  filter: SegmentFilter,
  prefix: string,
  columnOf?: (owner: Owner) => string,
): Sql {
  const found = readSegments(filter).map((segment, index) => {
    const name = `${prefix}_${index}`;
    if (columnOf) return memberCondition(source, segment, name, columnOf(segment.of));
    const ofEvents = (from: OwnerSource) => memberCondition(from, segment, name, OWNERS[segment.of].column);
    return segment.of === 'user' ? ofPersons(source, ofEvents) : ofEvents(source);
  });
  const sql = found.map((one) => `(${one.sql})`).join(' OR ');
  return {
    sql: filter.condition.operator === 'ne' ? `NOT (${sql})` : sql,
    params: Object.assign({}, ...found.map(({ params }) => params)),
  };
}

function memberCondition(source: OwnerSource, segment: Segment, prefix: string, column: string): Sql {
  const { of, properties, times, behaviour } = segment;
  const conditions = [
    ...properties.map((filter, index) => ownerPropertyCondition(source, of, filter, `${prefix}p${index}`, column)),
    ...times.map(({ field, condition }, index) =>
      ownerTimeCondition(source, `${of}.${field}`, condition as TimeCondition, `${prefix}t${index}`, column),
    ),
    ...behaviour.map((one, index) => behaviourCondition(source, of, one, `${prefix}b${index}`, column)),
  ];
  return {
    sql: [`${column} != ''`, ...conditions.map(({ sql }) => `(${sql})`)].join(' AND '),
    params: Object.assign({}, ...conditions.map(({ params }) => params)),
  };
}

/** The condition that who is in a column did something so often, or never. Hidden events do not count. */
function behaviourCondition(
  source: OwnerSource,
  owner: Owner,
  behaviour: Behaviour,
  prefix: string,
  column: string,
): Sql {
  const { sql, params } = actorsQuery(source, owner, behaviour, prefix);
  return { sql: `identity(${column}) GLOBAL ${behaviour.times === 0 ? 'NOT IN' : 'IN'} (${sql})`, params };
}

/**
 * Returns the query for those who did something so often, or once where it asks for those who never did.
 *
 * @param toldApartBy returns the SQL of what the query gives of an identifier
 */
function actorsQuery(
  { tables, hidden }: OwnerSource,
  owner: Owner,
  { did, times, days }: Behaviour,
  prefix: string,
  toldApartBy = (identifier: string) => identifier,
): Sql {
  const parameters = new BoundParameters(prefix);
  const actor = OWNERS[owner].column;
  const arePersons = owner === 'user' && tables.areLinked;
  const one = toldApartBy(actor);
  const nowMs = Date.now();
  const [start, end, count] = [`${prefix}_start`, `${prefix}_end`, `${prefix}_count`];
  const within: Sql[] =
    days === undefined
      ? []
      : [
          {
            sql: `timestamp BETWEEN fromUnixTimestamp64Milli({${start}:Int64}) AND fromUnixTimestamp64Milli({${end}:Int64})`,
            params: { [start]: nowMs - days * DAY_MS, [end]: nowMs },
          },
        ];
  const { sql, params } = where([
    { sql: `event = ${parameters.text(did)}`, params: parameters.params },
    ...(arePersons ? [] : [{ sql: `${actor} != ''`, params: {} }]),
    ...within,
    ...shownConditions(hidden),
  ]);
  const events = arePersons
    ? `${withPersons(tables, `SELECT user_id, anonymous_id FROM ${tables.events} ${sql}`, 'named')} WHERE ${actor} != ''`
    : `${tables.events} ${sql}`;
  return {
    sql: `SELECT ${one} FROM ${events} GROUP BY ${one} HAVING count() >= {${count}:UInt32}`,
    params: { ...params, [count]: Math.max(times, 1) },
  };
}

/** Who a list of users or organizations has. */
export interface MemberFilters {
  readonly segments: readonly SegmentFilter[];
  readonly properties: readonly PropertyFilter[];
}

/** Returns the condition that the user or the organization `id` meets filters, one by segments among them. */
export function memberFilterCondition(source: OwnerSource, owner: Owner, { segments, properties }: MemberFilters): Sql {
  const conditions = [
    ...segments.map((filter, index) => segmentCondition(source, filter, `g${index}`, () => 'id')),
    ...properties.map((filter, index) => ownerPropertyCondition(source, owner, filter, `p${index}`, 'id')),
  ];
  return {
    sql: conditions.map(({ sql }) => `(${sql})`).join(' AND '),
    params: Object.assign({}, ...conditions.map(({ params }) => params)),
  };
}

/** Settings of {@link segmentSizeQuery}: it reads little of many rows, in blocks of ClickHouse's default. */
export const SEGMENT_SIZE_SETTINGS: QuerySettings = { max_block_size: '65409' };

/** Tells identifiers apart where they are counted, as in a series of distinct users. */
const hashOf = (identifier: string) => `sipHash64(${identifier})`;

/**
 * Returns the query for how many are in a segment. Who did something is counted by the events alone: whoever has one is stored
 * before it.
 */
export function segmentSizeQuery(source: OwnerSource, segment: Segment): Sql {
  const { of, properties, times, behaviour } = segment;
  const [did] = behaviour;
  if (did && did.times > 0 && behaviour.length + properties.length + times.length === 1) {
    const { sql, params } = actorsQuery(source, of, did, 'g', hashOf);
    return { sql: `SELECT count() FROM (${sql})`, params };
  }
  const isUser = of === 'user';
  const members = memberCondition(source, segment, 'g', 'id');
  return {
    sql: `${isUser ? `WITH ${lastDeletionOf(source.tables, 'id', 'true')} AS deleted` : ''}
SELECT uniqExact(${hashOf('id')})
FROM ${source.tables.entities}
WHERE kind = '${of}'${isUser ? ' AND (deleted = 0 OR version > deleted)' : ''} AND (${members.sql})`,
    params: members.params,
  };
}
