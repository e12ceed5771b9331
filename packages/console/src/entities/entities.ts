// Users and organizations: the pages that list them, and the page of each.
import { deferred } from '../parts/parts.ts';

export { EntitiesPage } from './entities-page.tsx';

export const EntityPage = deferred(() => import('./entity-page.tsx').then(({ EntityPage }) => EntityPage));
