import { signal } from '@preact/signals';
import { type EventNames, type EventProperties, getJson } from './api.ts';

/** What there is to choose from in forms. */
export interface Menus {
  /** Names of events, the most frequent first. */
  readonly events: readonly string[];
  /** Properties of the newest events, as parameters name them: `properties.plan`. */
  readonly properties: EventProperties['results'];
}

/** Empty until they are loaded: any text may be typed as well. */
export const menus = signal<Menus>({ events: [], properties: [] });

/** Loads {@link menus}. What cannot be loaded stays empty. */
export async function loadMenus(signal: AbortSignal): Promise<void> {
  const load = <Body extends EventNames | EventProperties>(path: string): Promise<Body['results']> =>
    getJson<Body>(path, signal).then(
      ({ results }) => results,
      () => [],
    );
  const [names, properties] = await Promise.all([
    load<EventNames>('events/names'),
    load<EventProperties>('events/properties'),
  ]);
  menus.value = { events: [...new Set(names.map(({ event }) => event))], properties };
}
