/**
 * Returns when the change in a register of `entity_properties` was accepted, in microseconds since 1970, as ClickHouse
 * computes it. The register of `set_once` has a version before 2000, which falls as time passes: the writer's
 * store-properties.ts explains it. That lasts until 2053. The SQL files of the writer repeat this expression.
 *
 * @param version an expression for the version of the register
 */
export function acceptedSql(version: string): string {
  return `if(${version} BETWEEN 1000000000000 AND 946684799999999, toUInt64(2650000000000000 - ${version}), ${version})`;
}
