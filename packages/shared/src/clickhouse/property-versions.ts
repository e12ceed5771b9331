/**
 * Returns the version of the register of a property that is set once, as ClickHouse computes it: before 2000, so below that of
 * every other change, and the higher the earlier it was accepted. That lasts until 2053.
 *
 * @param accepted an expression for when the change was accepted, in microseconds since 1970
 */
export function setOnceVersionSql(accepted: string): string {
  return `toUInt64(2650000000000000 - ${accepted})`;
}

/**
 * Returns when the change in a register of `entity_properties` was accepted, in microseconds since 1970, as ClickHouse
 * computes it. The SQL files of the writer, and those for SQL of clients, repeat this expression.
 *
 * @param version an expression for the version of the register
 */
export function acceptedSql(version: string): string {
  return `if(${version} BETWEEN 1000000000000 AND 946684799999999, ${setOnceVersionSql(version)}, ${version})`;
}
