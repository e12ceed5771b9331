import { BoundParameters, type Sql } from '../../store/store.ts';
import { prefiltered } from './filter-sql.ts';
import { areTooMany, equalTextsOf, longestPiece } from './property-condition.ts';
import { type Place, type PropertyFilter, placesOf, toPositive } from './property-filter.ts';

// Filters on users and organizations. Each of their properties is a row of `entity_properties`.

/**
 * `property` is the fourth column of the sorting key. A bare condition on it makes ClickHouse compare every mark of the
 * table, 100 ms of CPU at two million users, and excludes none.
 */
const PROPERTY = 'identity(property)';

/** Returns the condition that a row of `entity_properties` is of one of some properties, by placeholders of their names. */
export function propertyIn(names: readonly string[]): string {
  return `${PROPERTY} IN (${names.join(', ')})`;
}

/** A property filter of entities, in its positive form. */
export interface EntityCondition {
  /** Placeholders of the names of the properties that can decide it. */
  readonly names: readonly string[];
  /** Holds for these properties. */
  readonly properties: string;
  /** Holds for a current property (`property`, `value`) if it matches. */
  readonly matches: string;
  /** Whether the filter asks for entities of which no property matches, rather than one. */
  readonly negated: boolean;
  readonly params: Sql['params'];
}

/**
 * Returns the condition of a property filter on users or organizations.
 *
 * @param index tells the filters of one query apart
 */
export function entityCondition(requested: PropertyFilter, index: number | string): EntityCondition {
  const { filter, negated } = toPositive(requested);
  const parameters = new BoundParameters(`p${index}`);
  const found = valueConditions(filter, 'value', parameters);
  const names = found.map(({ property }) => property);
  return {
    names,
    properties: propertyIn(names),
    matches: `(${found.map(({ sql }) => sql).join(' OR ')})`,
    negated,
    params: parameters.params,
  };
}

/** Conditions on rows of `entity_properties` whose entity may match a positive filter. */
export interface CandidateConditions {
  /** What the text index can answer. */
  readonly indexed: string;
  /** Whether the index finds the value; otherwise it finds every value of the property. */
  readonly findsValue: boolean;
  /** What the row itself says. */
  readonly exact: string;
  readonly params: Sql['params'];
}

/** Whose values a search in the index is for, as SQL. */
interface IndexedBy {
  readonly workspace: string;
  readonly kind: string;
}

const BY_PARAMETERS: IndexedBy = { workspace: '{workspace:String}', kind: '{kind:String}' };

/** The value of a register, as the index has it. */
const VALUE = "tupleElement(register, 'value')";

/** The expression of the text index of `entity_properties`, word for word. */
const TOKENS = `arrayMap(piece -> hex(toUInt32(sipHash64(workspace_id, kind, property, piece))), arrayPushFront(splitByChar(',', translate(${VALUE}, '{}[]', ',,,,')), ''))`;

/**
 * Returns the conditions that hold for a row of every entity that matches a positive filter. Such a row may be out of
 * date, or of a user who was deleted: what it finds are candidates.
 *
 * @param index tells the filters of one query apart
 * @param indexedBy SQL of the workspace and the kind, which the index has as constants
 */
export function candidateConditions(
  filter: PropertyFilter,
  index: number | string,
  indexedBy: IndexedBy = BY_PARAMETERS,
): CandidateConditions {
  const parameters = new BoundParameters(`c${index}`);
  const exact = valueConditions(filter, VALUE, parameters).map(({ sql }) => sql);
  const tokens = tokensOf(filter);
  const hashes = tokens.map(
    ([property, piece]) =>
      `hex(toUInt32(sipHash64(${indexedBy.workspace}, ${indexedBy.kind}, ${parameters.text(property)}, ${parameters.text(piece)})))`,
  );
  return {
    indexed: `hasAny(${TOKENS}, [${hashes.join(', ')}])`,
    findsValue: tokens.every(([, piece]) => piece !== ''),
    exact: `(${exact.join(' OR ')})`,
    params: parameters.params,
  };
}

/**
 * Returns texts of which every value that matches a positive filter contains one, and a value that is one of them does match.
 * `undefined` where there are none, or too many.
 */
export function plainTexts({ name, condition }: PropertyFilter): readonly string[] | undefined {
  const texts = equalTextsOf(condition);
  const isOne = placesByProperty(name).size === 1;
  return isOne && texts && !areTooMany(texts) ? texts : undefined;
}

/** For each property that a filter's name can begin with: its placeholder, and that `column` has a matching value. */
function valueConditions(filter: PropertyFilter, column: string, parameters: BoundParameters) {
  return [...placesByProperty(filter.name)].map(([name, places]) => {
    const property = parameters.text(name);
    return { property, sql: `(${PROPERTY} = ${property} AND ${prefiltered(column, places, filter, parameters)})` };
  });
}

/** The properties that a name can begin with, longer ones first, each with the places that the rest can mean inside its value. */
export function placesByProperty(name: string): ReadonlyMap<string, readonly Place[]> {
  const segments = name.split('.');
  const byEnd = Map.groupBy(placesOf(name), ([property]) => property?.to ?? 0);
  return new Map(
    [...byEnd].map(([to, found]) => [segments.slice(0, to).join('.'), found.map(([, ...inside]) => inside)]),
  );
}

/**
 * Returns tokens of the text index, as pairs of a property and a piece of its value, of which every row that matches has
 * one. The empty piece stands for any value.
 */
function tokensOf(filter: PropertyFilter): readonly (readonly [property: string, piece: string])[] {
  const properties = [...placesByProperty(filter.name).keys()];
  const anyValue = properties.map((property) => [property, ''] as const);
  const texts = equalTextsOf(filter.condition);
  if (!texts) return anyValue;
  const tokens = properties.flatMap((property) =>
    keysWithin(filter.name, property).flatMap((key) =>
      texts.map((text) => [property, longestPiece(`${key}${text}`)] as const),
    ),
  );
  return areTooMany(tokens.map(([, piece]) => piece)) ? anyValue : tokens;
}

/**
 * How the JSON of a property writes the key before the value that a name means. A value of its own and an item of an
 * array have none.
 */
function keysWithin(name: string, property: string): readonly string[] {
  if (name === property) return [''];
  const inside = name.slice(property.length + 1).split('.');
  return [...inside.map((_, from) => `${JSON.stringify(inside.slice(from).join('.'))}:`), ''];
}
