// That a user became another one is a fact in `identity_links`, beside those about visitors: its `anonymous_id` is the merged user behind
// U+FFFF, which is no character. No visitor is ever linked whose identifier begins so.

const MERGE_PREFIX = '\uffff';

/** The `anonymous_id` of the facts that say whom a user became. */
export function mergeKeyOf(userId: string): string {
  return MERGE_PREFIX + userId;
}

/** Whether facts with an `anonymous_id` are about a merged user, and not about a visitor. */
export function isMergeKey(anonymousId: string): boolean {
  return anonymousId.startsWith(MERGE_PREFIX);
}

/** The merged user of such facts. */
export function mergedUserOf(mergeKey: string): string {
  return mergeKey.slice(MERGE_PREFIX.length);
}

/** SQL for whether a fact is about a merged user. The escapes are the UTF-8 of U+FFFF. */
export const IS_MERGE_SQL = "startsWith(anonymous_id, '\\xEF\\xBF\\xBF')";

/** SQL for the merged user of a fact; use it with {@link IS_MERGE_SQL}. */
export const MERGED_USER_SQL = 'substring(anonymous_id, 4)';

/** SQL for how a deletion names whom a fact is about: the merged user, or the visitor behind U+FFFF. */
export const DELETED_BY_FACT_SQL = `if(${IS_MERGE_SQL}, ${MERGED_USER_SQL}, concat('\\xEF\\xBF\\xBF', anonymous_id))`;
