import { deferred } from '../parts/parts.ts';

// It is not in the face, since the first load would have the charts of results with it.
export const SqlPage = deferred(() => import('./sql-page.tsx').then(({ SqlPage }) => SqlPage));
