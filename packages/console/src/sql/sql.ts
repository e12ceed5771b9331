// SQL: the page that runs statements, and how dashboards draw their results.
import { deferred } from '../parts/parts.ts';

export { readRows } from './rows.ts';
export { SqlTile } from './sql-result.tsx';
export const SqlPage = deferred(() => import('./sql-page.tsx').then((page) => page.SqlPage));
