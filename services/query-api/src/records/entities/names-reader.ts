import { Problem } from '@sluice/shared/http/problem';
import {
  BoundParameters,
  lastDeletionOf,
  type RequestQueries,
  type Sql,
  type Tables,
  withDeletions,
} from '../../store/store.ts';
import { candidateConditions, propertyIn } from '../filters/entity-condition.ts';
import type { PropertyFilter } from '../filters/property-filter.ts';
import { groupsOf, idsOf } from './candidates.ts';
import { type CandidatesQuery, FEW_ROWS, windowEndQuery } from './candidates-query.ts';
import { currentProperties } from './entities-query.ts';
import { readIdentities, usersAmong } from './entities-reader.ts';
import type { EntityKind } from './entity-kinds.ts';
import { type CalledBy, calledBy, type NamingOfKind, namingProperties } from './naming.ts';

/** How much of a property a name has, in characters. */
const TEXT_CHARACTERS_MAX = 200;

/** Of so many users, those with the first identifiers, a search looks into every name. */
export const SEARCHED_ENTITIES_MAX = 200_000;

/** How many candidates of each kind of query a search looks at, for each one that it returns. */
const CANDIDATES_PER_RESULT = 4;

/** A user or an organization that has a name or an e-mail address. */
export interface NamedEntity extends CalledBy {
  readonly id: string;
}

/** What was found by a text, and when it was seen last, in milliseconds. */
export interface FoundEntity extends NamedEntity {
  readonly lastSeenMs: number;
}

/** What is looked for: the words of a text. */
export interface NameSearch {
  readonly text: string;
  readonly naming: NamingOfKind;
  /** How many are returned at most. */
  readonly limit: number;
}

/** The texts of properties, by identifier. */
type TextsById = ReadonlyMap<string, ReadonlyMap<string, string>>;

/** Returns what those of some users or organizations are called who have a name or an e-mail address. */
export async function readNames(
  queries: RequestQueries,
  kind: EntityKind,
  naming: NamingOfKind,
  ids: readonly string[],
): Promise<readonly NamedEntity[]> {
  const texts = await readTexts(queries, kind, naming, ids);
  return [...texts].map(([id, own]) => ({ id, ...calledBy(naming, own) }));
}

/**
 * Returns users or organizations whose identifier begins with a text, or whose names and e-mail addresses have all of its words
 * in them, in any case; equal ones first, then those that begin with the text, then who was seen last.
 *
 * It finds identifiers and whole values of all of them by indexes, and parts of values among the first ones by identifier.
 *
 * @param searchedMax into the names of how many of them it looks
 * @returns `isComplete` is false when there may be others that match
 */
export async function searchNames(
  queries: RequestQueries,
  kind: EntityKind,
  search: NameSearch,
  searchedMax = SEARCHED_ENTITIES_MAX,
): Promise<{ readonly found: readonly FoundEntity[]; readonly isComplete: boolean }> {
  const count = CANDIDATES_PER_RESULT * search.limit;
  const [byId, byValue, byPart] = await Promise.all([
    find(queries, byIdQuery(kind, search, count)),
    find(queries, byValueQuery(kind, search, count)),
    findByPart(queries, { kind, search, count, searchedMax }),
  ]);
  const candidates = [...new Set([...byId, ...byValue, ...byPart.ids])];
  const found = rankedOf(search, await readCandidates(queries, kind, search.naming, candidates));
  const isFull = [byId, byValue, byPart.ids].some(({ length }) => length >= count);
  return { found: found.slice(0, search.limit), isComplete: byPart.isWhole && !isFull && found.length <= search.limit };
}

async function find(queries: RequestQueries, query: CandidatesQuery | undefined): Promise<readonly string[]> {
  return query ? idsOf(await queries.all('entity_candidates', query, { settings: query.settings })) : [];
}

/** A range of the sorting key. */
function byIdQuery(kind: EntityKind, { text }: NameSearch, count: number): CandidatesQuery {
  return {
    statement: (tables) => ({
      sql: `SELECT DISTINCT id
FROM ${tables.entities}
WHERE kind = {kind:String} AND startsWith(id, {text:String})
ORDER BY id
LIMIT {count:UInt64}`,
      params: { kind, text, count },
    }),
    settings: FEW_ROWS,
  };
}

/** Those of which a property is the whole text, as it is or in small letters: the index finds these. */
function byValueQuery(kind: EntityKind, { text, naming }: NameSearch, count: number): CandidatesQuery | undefined {
  const value = [...new Set([text, text.toLowerCase()])];
  const conditions = namingProperties(naming).map((name, index) => {
    const filter: PropertyFilter = { document: 'properties', name, condition: { operator: 'in', value } };
    return candidateConditions(filter, index);
  });
  if (conditions.length === 0) return undefined;
  return {
    statement: (tables) => ({
      sql: `SELECT DISTINCT id
FROM ${tables.entityProperties}
WHERE kind = {kind:String} AND (${conditions.map(({ indexed, exact }) => `(${indexed} AND ${exact})`).join(' OR ')})
ORDER BY id
LIMIT {count:UInt64}`,
      params: Object.assign({ kind, count }, ...conditions.map(({ params }) => params)),
    }),
    settings: FEW_ROWS,
  };
}

interface PartSearch {
  readonly kind: EntityKind;
  readonly search: NameSearch;
  readonly count: number;
  readonly searchedMax: number;
}

/** Finds those whose properties have the words in them, among the first ones by identifier. */
async function findByPart(
  queries: RequestQueries,
  { kind, search, count, searchedMax }: PartSearch,
): Promise<{ readonly ids: readonly string[]; readonly isWhole: boolean }> {
  if (namingProperties(search.naming).length === 0) return { ids: [], isWhole: true };
  try {
    const [until] = await find(queries, windowEndQuery(kind, { direction: 'ASC', after: undefined }, searchedMax));
    const ids = await find(queries, byPartQuery(kind, search, count, until));
    return { ids, isWhole: until === undefined };
  } catch (error) {
    // What the other queries find is worth showing.
    if (error instanceof Problem && error.code === 'query_too_expensive') return { ids: [], isWhole: false };
    throw error;
  }
}

function byPartQuery(
  kind: EntityKind,
  { text, naming }: NameSearch,
  count: number,
  until: string | undefined,
): CandidatesQuery {
  const parameters = new BoundParameters('s');
  // As the JSON of a text has it.
  const words = wordsOf(text).map((word) => parameters.text(JSON.stringify(word).slice(1, -1)));
  const properties = propertyIn(namingProperties(naming).map((name) => parameters.text(name)));
  const has = words.map((word) => `positionCaseInsensitiveUTF8(value, ${word}) > 0`);
  return {
    statement: (tables) => ({
      sql: `SELECT id
FROM (
  SELECT id, tupleElement(register, 'value') AS value
  FROM ${tables.entityProperties}
  WHERE kind = {kind:String} AND ${until === undefined ? '' : 'id <= {until:String} AND '}${properties}
)
WHERE ${has.join(' OR ')}
GROUP BY id
HAVING ${has.map((sql) => `max(${sql})`).join(' AND ')}
ORDER BY id
LIMIT {count:UInt64}`,
      params: { ...parameters.params, kind, count, ...(until !== undefined && { until }) },
    }),
    settings: {},
  };
}

interface Candidate extends FoundEntity {
  readonly texts: readonly string[];
}

/** Reads those of some candidates that exist. */
async function readCandidates(
  queries: RequestQueries,
  kind: EntityKind,
  naming: NamingOfKind,
  ids: readonly string[],
): Promise<readonly Candidate[]> {
  const candidates: Candidate[] = [];
  for (const group of groupsOf(ids)) {
    const [{ identities }, texts] = await Promise.all([
      readIdentities(queries, kind, group),
      readTexts(queries, kind, naming, group),
    ]);
    for (const [id, , lastSeenMs] of identities) {
      const own = texts.get(id) ?? new Map();
      candidates.push({ id, lastSeenMs, ...calledBy(naming, own), texts: [...own.values()] });
    }
  }
  return candidates;
}

/** Returns the candidates that match, the best first. */
function rankedOf({ text }: NameSearch, candidates: readonly Candidate[]): readonly FoundEntity[] {
  const whole = text.toLowerCase();
  const words = wordsOf(whole);
  const ranked = candidates.flatMap(({ texts, ...found }) => {
    const own = [found.id, ...texts, found.name ?? ''].map((one) => one.toLowerCase());
    const all = own.slice(1).join('\n');
    if (!found.id.startsWith(text) && !words.every((word) => all.includes(word))) return [];
    const rank = own.includes(whole) ? 0 : own.some((one) => one.startsWith(whole)) ? 1 : 2;
    return [{ rank, found }];
  });
  ranked.sort((one, other) => one.rank - other.rank || other.found.lastSeenMs - one.found.lastSeenMs);
  return ranked.map(({ found }) => found);
}

function wordsOf(text: string): readonly string[] {
  return text.split(/\s+/).filter((word) => word !== '');
}

/** Returns the texts of the properties that a naming looks at. Whoever has none is left out. */
async function readTexts(
  queries: RequestQueries,
  kind: EntityKind,
  naming: NamingOfKind,
  ids: readonly string[],
): Promise<TextsById> {
  const texts = new Map<string, Map<string, string>>();
  const names = namingProperties(naming);
  if (names.length === 0 || ids.length === 0) return texts;
  const [rows, deletions] = await withDeletions(queries, usersAmong(kind, ids), () =>
    queries.all('entity_properties', (tables) => textsQuery(tables, kind, names, ids)),
  );
  for (const [id, property, text, version] of rows as [string, string, string, number][]) {
    if (deletions.hide(id, version) || text.trim() === '') continue;
    const own = texts.get(id) ?? new Map<string, string>();
    texts.set(id, own.set(property, text.trim()));
  }
  return texts;
}

/** Only strings are names. Long ones are cut. */
function textsQuery(tables: Tables, kind: EntityKind, names: readonly string[], ids: readonly string[]): Sql {
  const parameters = new BoundParameters('n');
  const ofThese = `id IN {ids:Array(String)} AND ${propertyIn(names.map((name) => parameters.text(name)))}`;
  return {
    sql: `SELECT id, property, substringUTF8(JSONExtractString(value), 1, {characters:UInt64}), version
FROM (${currentProperties(tables, ofThese, kind === 'user' && lastDeletionOf(tables, 'id'))})
WHERE startsWith(value, '"')`,
    params: { ...parameters.params, kind, ids, characters: TEXT_CHARACTERS_MAX },
  };
}
