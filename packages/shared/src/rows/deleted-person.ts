// A deletion is of a user, or of an anonymous visitor: of what has no user and a certain `anonymous_id`. The column `user_id` of
// the tables of deletions names either of them, and so does the row that travels through Kafka. A visitor is named by its
// `anonymous_id` behind U+FFFF, which is no character, so that nobody's user has such an identifier. A statement compares deletions
// with the person of an event: its user, or its visitor where it has no user. The statements of the writer write that out.

const VISITOR_PREFIX = '\uffff';

/** How a deletion names an anonymous visitor. */
export function visitorOf(anonymousId: string): string {
  return VISITOR_PREFIX + anonymousId;
}

/** Whether a deletion names an anonymous visitor. */
export function isVisitor(person: string): boolean {
  return person.startsWith(VISITOR_PREFIX);
}

/** The anonymous id of a visitor, as a deletion names it. */
export function anonymousIdOf(visitor: string): string {
  return visitor.slice(VISITOR_PREFIX.length);
}

/** What a record of an event says of whose it is. */
export interface EventPerson {
  readonly userId: string | null;
  readonly anonymousId: string | null;
}

/** How a deletion names the person of an event. `undefined`: the event has neither a user nor an anonymous id. */
export function personOf({ userId, anonymousId }: EventPerson): string | undefined {
  return userId ?? (anonymousId === null ? undefined : visitorOf(anonymousId));
}

/** SQL for the person of a row of `events`, as a deletion names it. The escapes are the UTF-8 of U+FFFF. */
export const PERSON_SQL = "if(user_id = '', concat('\\xEF\\xBF\\xBF', anonymous_id), user_id)";

/** SQL for the `anonymous_id` of a deletion in `user_id`; use it with {@link IS_VISITOR_SQL}. */
export const ANONYMOUS_ID_SQL = 'substring(user_id, 4)';

/** SQL for whether a deletion in `user_id` is of an anonymous visitor. */
export const IS_VISITOR_SQL = "startsWith(user_id, '\\xEF\\xBF\\xBF')";
