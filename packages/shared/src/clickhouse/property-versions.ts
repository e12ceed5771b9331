// The rows of `entity_properties` of one property, by `once_week`. The highest version of a register wins in each.
//
// 0: what was set or removed, with the time of acceptance as version.
// 1: what was set once first. Its version is before the year 2000, which is below all others, and the higher the earlier it
//    was accepted. That lasts until 2053.
// Others: what was set once last in this week since 1970, with the time since its begin as version: below both others.
//
// So the highest register of all is what counts for an organization, and for a user who was never deleted. A deletion hides
// what was accepted before it. Of 1 it may hide the first and leave a later one that is not stored, so 1 does not count for
// whoever was deleted. Of a week it leaves the last, or nothing.

/** The length of a week in microseconds. */
const WEEK = '604800000000';

const SET_ONCE_TOP = '2650000000000000';

/** Returns the rows, by their `once_week`, that a staged change is stored in, as an array that ClickHouse computes. */
export const ONCE_WEEKS_OF_CHANGE = `multiIf(
    operation != 'set_once', [toUInt16(0)],
    kind = 'user', [toUInt16(1), toUInt16(intDiv(version, ${WEEK}))],
    [toUInt16(1)]
  )`;

/** The version of the register of a staged change, as ClickHouse computes it from its `version` and a `once_week`. */
export const VERSION_OF_CHANGE = `multiIf(
    once_week = 0, version,
    once_week = 1, toUInt64(${SET_ONCE_TOP} - version),
    version % ${WEEK}
  )`;

/**
 * Returns when the change in a register of `entity_properties` was accepted, in microseconds since 1970, as ClickHouse
 * computes it. The SQL files of the writer, and those for SQL of clients, repeat this expression.
 *
 * @param version an expression for the version of the register
 * @param onceWeek an expression for the `once_week` of its row
 */
export function acceptedSql(version: string, onceWeek: string): string {
  const decoded = `if(${version} BETWEEN 1000000000000 AND 946684799999999, toUInt64(${SET_ONCE_TOP} - ${version}), ${version})`;
  return `if(${onceWeek} > 1, ${onceWeek} * ${WEEK} + ${version}, ${decoded})`;
}

/** When the change of a row of `entity_properties` was accepted. */
export const ROW_ACCEPTED = acceptedSql("tupleElement(register, 'version')", 'once_week');

/**
 * What decides a property, an aggregate of the rows that {@link countsSql} leaves: a tuple whose second element is the register.
 * The first week with something decides where nothing else does, and in it the last; several rows of a week may not be merged yet.
 * views.sql in deploy/clickhouse/sql repeats it.
 */
export const DECIDING = 'max((if(once_week > 1, 65535 - once_week, 65536), register))';

/**
 * The JSON that {@link DECIDING} sets a property to; the empty string where it removes it. The register's order is packed
 * into one number: ClickHouse compares tuples member by member, which costs more than twice as much.
 */
export const DECIDING_VALUE = `argMax(
    if(tupleElement(register, 'operation') = 'set', tupleElement(register, 'value'), ''),
    bitShiftLeft(toUInt256(if(once_week > 1, 65535 - once_week, 65536)), 193)
      + bitShiftLeft(toUInt256(tupleElement(register, 'version')), 129)
      + bitShiftLeft(toUInt256(reinterpretAsUInt128(tupleElement(register, 'change_id'))), 1)
      + (tupleElement(register, 'operation') = 'remove')
  )`;

/** When the change in `winner`, which is {@link DECIDING}, was accepted. */
export const WINNER_ACCEPTED = acceptedSql('winner.2.version', 'if(winner.1 < 65536, toUInt64(65535 - winner.1), 0)');

/**
 * Returns the condition that a row of `entity_properties` counts.
 *
 * @param deleted an expression for the version of the last deletion of its user, 0 without one
 */
export function countsSql(deleted: string): string {
  return `(${deleted} = 0 OR once_week != 1 AND ${ROW_ACCEPTED} > ${deleted})`;
}
