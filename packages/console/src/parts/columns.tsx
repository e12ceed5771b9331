import type { ComponentChildren } from 'preact';
import { changeSettings, settings } from '../base/base.ts';
import { RowList } from './row-list.tsx';

/** A column that may be shown. */
export interface Column {
  /** What it is called in the settings. Names of properties begin with `properties.`. */
  readonly id: string;
  readonly title: string;
  /** Whether it is there unless somebody says otherwise. Default: yes. */
  readonly isUsual?: boolean;
}

/** So many properties are offered as columns. */
const PROPERTIES_MAX = 30;

const PREFIX = 'properties.';

/** Returns a column for each property that some records have. */
export function propertyColumns(records: readonly { readonly properties: object }[]): readonly Column[] {
  const names = [...new Set(records.flatMap(({ properties }) => Object.keys(properties)))].slice(0, PROPERTIES_MAX);
  return names.map((name) => ({ id: `${PREFIX}${name}`, title: name, isUsual: false }));
}

/** Returns the name of the property that a column shows; `undefined` for any other column. */
export function propertyOfColumn({ id }: Column): string | undefined {
  return id.startsWith(PREFIX) ? id.slice(PREFIX.length) : undefined;
}

/** Returns which of the columns of a list are shown. Properties that were chosen are there, also where no record has them. */
function shownColumns(list: string, columns: readonly Column[]): readonly Column[] {
  const chosen = settings.value.columns[list];
  if (!chosen) return columns.filter(({ isUsual = true }) => isUsual);
  const missing = chosen.filter((id) => id.startsWith(PREFIX) && columns.every((column) => column.id !== id));
  const all = [...columns, ...missing.map((id) => ({ id, title: id.slice(PREFIX.length) }))];
  return all.filter(({ id }) => chosen.includes(id));
}

interface ColumnsMenuProps {
  /** The list whose columns they are: each has its own. */
  readonly list: string;
  readonly columns: readonly Column[];
}

/** Chooses the columns of a list, which are kept in the browser. */
function ColumnsMenu({ list, columns }: ColumnsMenuProps) {
  const shown = shownColumns(list, columns).map(({ id }) => id);
  const keep = (chosen: readonly string[] | undefined) => {
    const { [list]: _, ...others } = settings.value.columns;
    changeSettings({ columns: chosen ? { ...others, [list]: chosen } : others });
  };
  return (
    <details class="columns">
      <summary>Columns</summary>
      <fieldset>
        <legend class="hidden">Columns</legend>
        {columns.map(({ id, title }) => (
          <label key={id} class="choice">
            <input
              type="checkbox"
              checked={shown.includes(id)}
              onChange={({ currentTarget }) =>
                keep(currentTarget.checked ? [...shown, id] : shown.filter((other) => other !== id))
              }
            />
            <bdi>{title}</bdi>
          </label>
        ))}
        <button type="button" onClick={() => keep(undefined)}>
          The usual columns
        </button>
      </fieldset>
    </details>
  );
}

/** What a row of a {@link ListTable} is. */
interface Row {
  readonly key: string;
  /** Whether its record is open beside the list. Default: no. */
  readonly isShown?: boolean;
  /** The cells that it begins with. */
  readonly leading: ComponentChildren;
}

interface ListTableProps<Item> {
  /** The list, whose choice of columns is kept by this name. */
  readonly list: string;
  readonly caption: string;
  /** The titles of the columns that are always there. */
  readonly leading: readonly string[];
  /** Those that can be chosen. */
  readonly columns: readonly Column[];
  readonly items: readonly Item[];
  readonly rowOf: (item: Item) => Row;
  readonly cellOf: (item: Item, column: Column) => ComponentChildren;
}

/** A list of records, one a row, with columns that can be chosen behind those that are always there. */
export function ListTable<Item>({ list, caption, leading, columns, items, rowOf, cellOf }: ListTableProps<Item>) {
  const shown = shownColumns(list, columns);
  return (
    <>
      <ColumnsMenu list={list} columns={columns} />
      <RowList label={caption}>
        <table class="events">
          <caption>{caption}</caption>
          <thead>
            <tr>
              {[...leading, ...shown.map(({ title }) => title)].map((title, index) => (
                <th key={index} scope="col">
                  {title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {items.map((item) => {
              const { key, isShown = false, leading: cells } = rowOf(item);
              return (
                <tr key={key} class={isShown ? 'shown' : undefined}>
                  {cells}
                  {shown.map((column) => (
                    <td key={column.id} class={column.id === 'properties' ? 'line' : undefined}>
                      {cellOf(item, column)}
                    </td>
                  ))}
                </tr>
              );
            })}
          </tbody>
        </table>
      </RowList>
    </>
  );
}
