// Pages that are a subject of their own.
export { HomePage } from './home-page.tsx';
export { SettingsPage } from './settings-page.tsx';
