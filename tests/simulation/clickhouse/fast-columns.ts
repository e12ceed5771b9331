import { columnBit, FAST_PROPERTIES_MAX, LIST_BITS, TEXT_SAYS } from '@sluice/shared/clickhouse/fast-properties';
import type { EventRow } from '@sluice/shared/rows';

/** A list of fast properties that a workspace has declared. */
export interface FastList {
  readonly workspace: string;
  /** The same for the same names, of the bits of a list alone; 0 where there are none. */
  readonly set: string;
  /** By column; empty: the column is free. */
  readonly names: readonly string[];
  /** Higher for a later one. */
  readonly declared: number;
}

/** What a row has in the columns of fast properties. */
export interface FastColumns {
  /** The list, and the columns of which the text has to be read. */
  readonly set: string;
  readonly values: readonly string[];
}

/** Returns the columns of a row whose workspace has declared a list. Default: it has declared none. */
export function columnsOf(
  { properties = {} }: Pick<EventRow, 'properties'>,
  { set, names }: Pick<FastList, 'set' | 'names'> = { set: '0', names: [] },
): FastColumns {
  const values = Array.from({ length: FAST_PROPERTIES_MAX }, (_, index) => columnOf(properties, names[index] ?? ''));
  const bits = values.reduce((all, value, index) => (value === TEXT_SAYS ? all | columnBit(index + 1) : all), 0n);
  return { set: set === '0' ? set : String(BigInt(set) | bits), values };
}

/** Returns the list that filled the columns of a row. */
export function listOf({ set }: FastColumns): string {
  return String(BigInt(set) & LIST_BITS);
}

/** Returns the newest list of each workspace that has declared any, the newest first. */
export function newestLists(lists: readonly FastList[]): readonly FastList[] {
  const newestFirst = lists.toSorted((one, other) => other.declared - one.declared);
  return newestFirst.filter(
    ({ workspace }, index) => newestFirst.findIndex((list) => list.workspace === workspace) === index,
  );
}

/**
 * Returns the list that a statement binds for the events of a workspace; undefined where it binds none.
 *
 * @param names returns the names of the properties of a column, by workspace
 */
export function boundList(
  workspace: string,
  { workspaces = [], sets = [] }: { readonly workspaces?: readonly string[]; readonly sets?: readonly string[] },
  names: (column: number) => readonly string[] | undefined,
): Pick<FastList, 'set' | 'names'> | undefined {
  const place = workspaces.indexOf(workspace);
  if (place < 0) return undefined;
  const byColumn = Array.from({ length: FAST_PROPERTIES_MAX }, (_, index) => names(index + 1)?.[place] ?? '');
  return { set: sets[place] ?? '0', names: byColumn };
}

/** As the writer's SQL gives it for values that are short, and no long integers. */
function columnOf(properties: Readonly<Record<string, unknown>>, name: string): string {
  if (name === '' || !Object.hasOwn(properties, name)) return '';
  const json = JSON.stringify(properties[name]);
  return /^[[{]/.test(json) ? TEXT_SAYS : json;
}
