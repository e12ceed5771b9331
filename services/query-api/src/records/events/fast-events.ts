import { areFilled, FAST_PROPERTIES_MAX, fastColumn } from '@sluice/shared/clickhouse/fast-properties';
import { BoundParameters, type FastSets, type Sql, shownConditions, type Tables, where } from '../../store/store.ts';
import { eventPropertyCondition, type TimeRange } from '../filters/filter-sql.ts';
import { plainValueCondition, REPAIRED } from '../filters/property-condition.ts';
import { acceptedJson, type PropertyFilter, toPositive } from '../filters/property-filter.ts';
import { propertyValue, withoutNull } from '../filters/property-value.ts';
import {
  PERSONS_BY_NAME,
  PERSONS_BY_NUMBER,
  type PersonSql,
  type PersonsRead,
  withPersons,
} from '../owners/persons.ts';
import { EVENT_COLUMNS } from './event-columns.ts';
import {
  byUsers,
  type EventSelection,
  filterConditions,
  ownersIn,
  type SelectionDocument,
  selectionConditions,
  whereSelected,
} from './event-selection.ts';

// How statements read the properties of events. Of a fast property a row has the value in a column, where the row itself says so: its
// `fast_set` is one that has this property in this column, and the column does not say that the text has to be read. So a statement reads
// events in two parts, the rows of which all columns that it needs say the values, and all others. The two conditions are each
// other's opposite, so each row is read in one way and once (docs/design/decisions/0113-fast-properties.md).

const PROPERTIES = EVENT_COLUMNS.properties.column;

/** Whether a property can be declared as fast: its name means one place in a text, and is written in one way. */
export function mayBeFast(name: string): boolean {
  return !name.includes('.') && name.isWellFormed() && !REPAIRED.test(name);
}

/** What to read FROM, and the WHERE behind it. */
export interface SelectedEvents {
  readonly from: Sql;
  readonly where: Sql;
}

/** Conditions besides those of a selection. */
export interface MoreConditions {
  /** On events as they were sent. */
  readonly onEvents?: readonly Sql[];
  /** On all columns of the statement. */
  readonly onPersons?: readonly Sql[];
}

/** What a statement reads of events. */
export interface ReadEvents<Selection> {
  /**
   * Returns the selected events of a range that are not hidden.
   *
   * @param hidden the condition that the events of pending deletions meet, if there are any
   */
  selected(range: TimeRange, hidden: Sql | undefined, more?: MoreConditions): SelectedEvents;
  /** Tells apart the persons of the events. */
  readonly person: PersonSql;
  /** The selection without the filters that the rows meet already. */
  readonly selection: Selection;
  /**
   * Returns SQL of the value of a property, as {@link propertyValue} does.
   *
   * @param name one of those that the statement was to read
   */
  valueOf(name: string, parameters: BoundParameters): string;
  /** Returns SQL of whether an event matches one of the conditions that the statement was to read; undefined: the statement says it by the text. */
  holds(filter: EventFilter): string | undefined;
}

type EventFilter = PropertyFilter<SelectionDocument>;

/**
 * Returns what to read of some events: fast properties from their columns, as far as rows have them, and all others from the text.
 *
 * @param names of the properties whose values the statement needs besides those of the filters
 * @param needs.persons what the statement needs of the persons of events, also of those of visitors, besides conditions; default: nothing
 * @param needs.conditions filters on single events that are no filters of the selection, such as those of a funnel's steps; default: none
 */
export function readEvents<Selection extends EventSelection>(
  tables: Tables,
  selection: Selection,
  names: readonly string[],
  {
    persons,
    conditions = [],
  }: { readonly persons?: PersonsRead | undefined; readonly conditions?: readonly EventFilter[] },
): ReadEvents<Selection> {
  const read = readColumns(tables, selection, names, conditions);
  const { ofUsers, others } = byUsers(read.selection);
  const areUsersFiltered = ofUsers.fields.length + ofUsers.properties.length > 0;
  const joined = tables.areLinked && persons && (areUsersFiltered ? 'named' : persons);
  return {
    person: joined === 'told apart' ? PERSONS_BY_NUMBER : PERSONS_BY_NAME,
    selection: read.selection,
    valueOf: read.valueOf,
    holds: read.holds,
    selected({ startMs, endMs }, hidden, { onEvents = [], onPersons = [] } = {}) {
      const selected = { ...read.selection, startMs, endMs };
      if (!joined) {
        return { from: read.from, where: whereSelected(tables, selected, hidden, [...onEvents, ...onPersons]) };
      }
      const owners = ownersIn(tables, hidden);
      const sent = where([
        ...selectionConditions({ ...selected, ...others }, owners),
        ...onEvents,
        ...shownConditions(hidden),
      ]);
      return {
        from: {
          sql: withPersons(tables, `SELECT * FROM ${read.from.sql} ${sent.sql}`, joined),
          params: { ...read.from.params, ...sent.params },
        },
        where: where([...filterConditions(ofUsers, { ...owners, hasPersons: true }, 'u'), ...onPersons]),
      };
    },
  };
}

/** What is read of events, and of what. */
interface ReadColumns<Selection> extends Pick<ReadEvents<Selection>, 'selection' | 'valueOf' | 'holds'> {
  /** What to read FROM. */
  readonly from: Sql;
}

function readColumns<Selection extends Pick<EventSelection, 'properties'>>(
  tables: Tables,
  selection: Selection,
  names: readonly string[],
  conditions: readonly EventFilter[],
): ReadColumns<Selection> {
  const columns = columnsOf(tables.fast);
  const values = [...new Set(names)].filter((name) => columns.has(name));
  const [fast, others] = partition(selection.properties, (filter) => isFast(filter, columns));
  const held = conditions.filter((filter) => isFast(filter, columns));
  const used = [...new Set([...values, ...[...fast, ...held].map(({ name }) => name)])];
  if (used.length === 0) {
    return {
      from: { sql: tables.events, params: {} },
      selection,
      valueOf: (name, parameters) => propertyValue(PROPERTIES, name, parameters),
      holds: () => undefined,
    };
  }
  const parameters = new BoundParameters('f');
  const columnOf = (name: string) => fastColumn(columns.get(name) as number);
  const named = (ofValues: readonly string[], ofHeld: readonly string[]) => [
    ...ofValues.map((sql, index) => `${sql} AS ${valueColumn(index)}`),
    ...ofHeld.map((sql, index) => `(${sql}) AS ${heldColumn(index)}`),
  ];
  const rows = isFilled(tables.fast, used, columns);
  const byColumn = (filter: EventFilter) => columnCondition(filter, columnOf(filter.name), parameters);
  const ofText = fast.map((filter, index) => eventPropertyCondition(filter, PROPERTIES, `ft${index}`));
  const heldOfText = held.map((filter, index) => eventPropertyCondition(filter, PROPERTIES, `fh${index}`));
  const sql = tables.eventsInParts([
    {
      rows: [rows, ...fast.map(byColumn)].map((condition) => `(${condition})`).join(' AND '),
      columns: named(
        values.map((name) => withoutNull(columnOf(name))),
        held.map(byColumn),
      ),
      filters: [],
    },
    {
      rows: `NOT (${rows})`,
      columns: named(
        values.map((name) => propertyValue(PROPERTIES, name, parameters)),
        heldOfText.map((condition) => condition.sql),
      ),
      filters: ofText.map((condition) => condition.sql),
    },
  ]);
  return {
    from: {
      sql,
      params: Object.assign({}, parameters.params, ...[...ofText, ...heldOfText].map(({ params }) => params)),
    },
    selection: { ...selection, properties: others },
    valueOf(name, more) {
      const index = values.indexOf(name);
      return index < 0 ? propertyValue(PROPERTIES, name, more) : valueColumn(index);
    },
    holds(filter) {
      const index = held.indexOf(filter);
      return index < 0 ? undefined : heldColumn(index);
    },
  };
}

function valueColumn(index: number): string {
  return `fast_value_${index}`;
}

function heldColumn(index: number): string {
  return `fast_held_${index}`;
}

/** The column of each property that is fast now. */
function columnsOf([newest]: FastSets): ReadonlyMap<string, number> {
  const names = newest?.names.slice(0, FAST_PROPERTIES_MAX) ?? [];
  return new Map(names.flatMap((name, index) => (name === '' ? [] : [[name, index + 1]])));
}

/** Whether a column can answer a filter. It has no value that is written in a text which ClickHouse's parser refuses. */
function isFast({ document, condition, name }: EventFilter, columns: ReadonlyMap<string, number>) {
  return document === 'properties' && columns.has(name) && !acceptedJson(condition).some((json) => REPAIRED.test(json));
}

/** The condition that the columns of a row have the values of all these properties. */
function isFilled(sets: FastSets, names: readonly string[], columns: ReadonlyMap<string, number>): string {
  const filling = sets.filter(({ names: other }) =>
    names.every((name) => other[(columns.get(name) as number) - 1] === name),
  );
  return areFilled(
    names.map((name) => columns.get(name) as number),
    filling.map(({ id }) => id),
  );
}

function columnCondition(requested: EventFilter, column: string, parameters: BoundParameters): string {
  const { filter, negated } = toPositive(requested as PropertyFilter);
  const sql = plainValueCondition(column, filter.condition, parameters);
  return negated ? `NOT (${sql})` : sql;
}

function partition<Item>(items: readonly Item[], isFirst: (item: Item) => boolean): [Item[], Item[]] {
  return [items.filter(isFirst), items.filter((item) => !isFirst(item))];
}
