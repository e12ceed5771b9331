import { computed, signal } from '@preact/signals';
import { type Calendar, parseSettings, type Settings } from './settings.ts';

const ITEM = 'sluice-settings';

/** The settings in force: the defaults until {@link followSettings} reads what is stored. */
export const settings = signal<Settings>(parseSettings(null));

/** The time zone of the browser. */
export const BROWSER_ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** The time zone that times are shown in, and days are of. */
export const timeZone = computed(() => settings.value.timeZone || BROWSER_ZONE);

/** What days and weeks of reports are by. */
export const calendar = computed<Calendar>(() => ({ timeZone: timeZone.value, weekStart: settings.value.weekStart }));

/** Changes settings, and keeps them. */
export function changeSettings(change: Partial<Settings>): void {
  settings.value = { ...settings.value, ...change };
  localStorage.setItem(ITEM, JSON.stringify(settings.value));
}

/** Reads the stored settings, and takes over what another tab changes from now on. */
export function followSettings(): void {
  settings.value = parseSettings(localStorage.getItem(ITEM));
  addEventListener('storage', ({ key, newValue }) => {
    if (key === ITEM) settings.value = parseSettings(newValue);
  });
}
