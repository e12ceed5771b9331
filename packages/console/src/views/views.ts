// Saved views, and the dashboards that show them.
import { deferred } from '../parts/parts.ts';

export { linkOf, takeLink } from './link.ts';
export { ViewsPage } from './views-page.tsx';

// One file for all of them, since whoever opens one opens others.
const loadPages = () => import('./dashboard-pages.tsx');
export const DashboardPage = deferred(() => loadPages().then((pages) => pages.DashboardPage));
export const DashboardsPage = deferred(() => loadPages().then((pages) => pages.DashboardsPage));
export const PinnedDashboards = deferred(() => loadPages().then((pages) => pages.PinnedDashboards));
export const WallPage = deferred(() => loadPages().then((pages) => pages.WallPage));
