// The parts that pages of any subject are made of.

export { Command, ConfirmButton, CopyButton, Snippet, useFocusBack } from './buttons.tsx';
export { type Column, ListTable, propertyColumns, propertyOfColumn } from './columns.tsx';
export { CsvButton, saveFile, type Table, tableOf, withoutFormulas } from './csv.tsx';
export { deferred } from './deferred.tsx';
export { Icon } from './icon.tsx';
export { LoadState, useLoad } from './load.tsx';
export { NameForm } from './name-form.tsx';
export { forgetNames, nameOfEntity } from './names.ts';
export { PageButtons, PageLinks, usePages } from './page-links.tsx';
export { ErrorBoundary, Problem } from './problem.tsx';
export { DocumentTable, isForSomebodyElse, RowList, startOfRow } from './row-list.tsx';
export { type Actions, useAction } from './use-action.ts';
export {
  beginningOf,
  clocks,
  EntityLink,
  EntityName,
  Figure,
  followTime,
  NumberLink,
  PropertyLine,
  PropertyText,
  Scrollable,
  Time,
} from './values.tsx';
