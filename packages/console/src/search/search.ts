// One search for users, organizations, events, what is saved, pages and actions.
import { deferred } from '../parts/parts.ts';

export type { SearchEntry } from './entries.ts';

export const SearchDialog = deferred(() => import('./search-dialog.tsx').then(({ SearchDialog }) => SearchDialog));
