import { signal } from '@preact/signals';
import { getJson } from './api.ts';

/** What there is to choose from in forms. */
export interface Menus {
  /** Names of events, the most frequent first. */
  readonly events: readonly string[];
  /** Properties of the newest events, as parameters name them: `properties.plan`. */
  readonly properties: readonly { readonly path: string; readonly types: readonly string[] }[];
}

/** Empty until they are loaded: any text may be typed as well. */
export const menus = signal<Menus>({ events: [], properties: [] });

interface Results<Item> {
  readonly results: readonly Item[];
}

/** Loads {@link menus}. What cannot be loaded stays empty. */
export async function loadMenus(signal: AbortSignal): Promise<void> {
  const load = <Item>(path: string) =>
    getJson<Results<Item>>(path, signal).then(
      ({ results }) => results,
      () => [],
    );
  const [names, properties] = await Promise.all([
    load<{ event: string }>('events/names'),
    load<Menus['properties'][number]>('events/properties'),
  ]);
  menus.value = { events: [...new Set(names.map(({ event }) => event))], properties };
}
