// Pages that are a subject of their own.
import { deferred } from '../parts/parts.ts';

export { HomePage } from './home-page.tsx';
export { SettingsPage } from './settings-page.tsx';
export const SqlPage = deferred(() => import('./sql-page.tsx').then((page) => page.SqlPage));
