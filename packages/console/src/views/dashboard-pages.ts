// The pages of dashboards, which are loaded together.
export { DashboardPage } from './dashboard-page.tsx';
export { DashboardsPage } from './dashboards-page.tsx';
export { WallPage } from './wall-page.tsx';
