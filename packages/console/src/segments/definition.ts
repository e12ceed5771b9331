import type { Owner, Segment } from '../base/base.ts';
import { type Condition, filterParams, parseFilters, textOfFilters } from '../filters/filters.ts';

/** What a segment is, as `PUT /segments/NAME` takes it. */
export type Definition = Pick<Segment, 'of' | 'filters' | 'behaviour'>;

export type Behaviour = Definition['behaviour'][number];

/** What begins the names of the filters of a segment here. The API leaves it out, since a segment is of one of them. */
const OWNER_OF: Readonly<Record<Segment['of'], Owner>> = { users: 'user', organizations: 'organization' };

const OWNER = /^(?:user|organization)\./;

/** Returns the filters of a segment as those of events are named: `properties.plan` of users is `user.properties.plan`. */
function namedFilters({ of, filters }: Pick<Definition, 'of' | 'filters'>): URLSearchParams {
  return new URLSearchParams(Object.entries(filters).map(([name, value]) => [`${OWNER_OF[of]}.${name}`, value]));
}

/** Returns the filters of a segment for a form. */
export function conditionsOf(definition: Pick<Definition, 'of' | 'filters'>): readonly Condition[] {
  return parseFilters(namedFilters(definition), []).conditions;
}

/** Returns the same filters for a segment of the others. */
export function conditionsFor(of: Segment['of'], conditions: readonly Condition[]): readonly Condition[] {
  return conditions.map((condition) => ({ ...condition, name: condition.name.replace(OWNER, `${OWNER_OF[of]}.`) }));
}

/**
 * Returns the filters of a form as the API takes them, of which {@link conditionsOf} is the reverse.
 *
 * @throws {Error} when two have one name and operator, of which the API takes one
 */
export function filtersOf(of: Segment['of'], conditions: readonly Condition[]): Definition['filters'] {
  const owner = `${OWNER_OF[of]}.`;
  const filters: Record<string, string> = {};
  for (const [param, value] of filterParams({ fields: {}, conditions, other: [] })) {
    const name = param.startsWith(owner) ? param.slice(owner.length) : param;
    if (Object.hasOwn(filters, name)) {
      throw new Error(`Two filters are on ${name}: use one, “is one of” for several values.`);
    }
    filters[name] = value;
  }
  return filters;
}

/** Returns a segment as a person reads it: `Organization: plan is pro, did not do “paid” within 14 days`. */
export function textOfSegment(definition: Definition): string {
  const filters = textOfFilters(namedFilters(definition));
  return [...(filters === '' ? [] : [filters]), ...definition.behaviour.map(textOfBehaviour)].join(', ');
}

function textOfBehaviour({ did, times, days }: Behaviour): string {
  const within = days === undefined ? '' : ` within ${days === 1 ? '1 day' : `${days} days`}`;
  if (times === 0) return within === '' ? `never did “${did}”` : `did not do “${did}”${within}`;
  return `did “${did}”${times === 1 ? '' : ` at least ${times} times`}${within}`;
}
