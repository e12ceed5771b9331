// Events: the page that lists them, one beside its list, and new ones as they are stored.

export { quoted } from './event-curl.ts';
export { EventLink, EventList, EventTable } from './event-list.tsx';
export { EventsPage } from './events-page.tsx';
export { useLiveTail, withStored } from './live-tail.ts';
export { filterOf } from './value-links.ts';
export { Leaf } from './value-tree.tsx';
