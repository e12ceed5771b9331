// Segments: the page that lists them, and the page of each.
import { deferred } from '../parts/parts.ts';

// One file for both, since whoever opens one opens the other.
const loadPages = () => import('./segment-pages.tsx');
export const SegmentPage = deferred(() => loadPages().then((pages) => pages.SegmentPage));
export const SegmentsPage = deferred(() => loadPages().then((pages) => pages.SegmentsPage));
