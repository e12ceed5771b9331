// SQL: the page that runs statements, and how dashboards draw their results.

export { SqlPage } from './deferred-page.ts';
export { readRows } from './rows.ts';
export { SqlTile } from './sql-result.tsx';
