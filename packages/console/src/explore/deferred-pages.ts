import { deferred } from '../parts/parts.ts';

// These are not in the face, since the first load would have the drawings with it.
export const ExplorePage = deferred(() => import('./explore-page.tsx').then(({ ExplorePage }) => ExplorePage));
export const PeoplePage = deferred(() => import('./people-page.tsx').then(({ PeoplePage }) => PeoplePage));
