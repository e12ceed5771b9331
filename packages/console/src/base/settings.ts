import { computed, effect, signal } from '@preact/signals';

export const WEEK_STARTS = ['monday', 'saturday', 'sunday'] as const;

export const THEMES = ['system', 'light', 'dark'] as const;

/** How a person wants times, colors and keys to be. They belong to the browser, and count in all its tabs and keys. */
export interface Settings {
  /** An IANA name; `''` for the time zone of the browser. */
  readonly timeZone: string;
  readonly weekStart: (typeof WEEK_STARTS)[number];
  /** The colors of the page; `system` for those that the browser prefers. */
  readonly theme: (typeof THEMES)[number];
  /** Whether keys without Ctrl or Alt open pages; somebody who dictates may not want them. */
  readonly shortcuts: boolean;
  /** The ids of dashboards that Home shows: a key sees those of its workspace. */
  readonly pinned: readonly string[];
  /** The columns that somebody has chosen, by list. */
  readonly columns: Readonly<Record<string, readonly string[]>>;
}

/** Home shows so many dashboards at most. */
const PINNED_MAX = 3;

const DEFAULTS: Settings = {
  timeZone: '',
  weekStart: 'monday',
  theme: 'system',
  shortcuts: true,
  pinned: [],
  columns: {},
};

/** What days and weeks of reports are by. */
export type Calendar = Pick<Settings, 'timeZone' | 'weekStart'>;

/** The time zone that an address names, or that of the calendar. */
export function zoneOf(params: URLSearchParams, { timeZone }: Calendar): string {
  const named = params.get('timeZone') ?? '';
  return isTimeZone(named) ? named : timeZone;
}

/** Reads stored settings. What is missing or not valid has its default: another version may have stored it. */
export function parseSettings(text: string | null): Settings {
  let stored: Partial<Record<keyof Settings, unknown>>;
  try {
    stored = Object(JSON.parse(text ?? '{}'));
  } catch {
    return DEFAULTS;
  }
  const { timeZone, weekStart, theme, shortcuts, pinned, columns } = stored;
  return {
    timeZone: typeof timeZone === 'string' && isTimeZone(timeZone) ? timeZone : DEFAULTS.timeZone,
    weekStart: WEEK_STARTS.find((day) => day === weekStart) ?? DEFAULTS.weekStart,
    theme: THEMES.find((one) => one === theme) ?? DEFAULTS.theme,
    shortcuts: typeof shortcuts === 'boolean' ? shortcuts : DEFAULTS.shortcuts,
    pinned: Array.isArray(pinned) ? pinned.filter((id) => typeof id === 'string').slice(-PINNED_MAX) : DEFAULTS.pinned,
    columns: Object.fromEntries(Object.entries(Object(columns)).filter(isListOfTexts)),
  };
}

function isListOfTexts(entry: [string, unknown]): entry is [string, string[]] {
  return Array.isArray(entry[1]) && entry[1].every((text) => typeof text === 'string');
}

/** Whether the browser knows a time zone by this IANA name. */
export function isTimeZone(name: string): boolean {
  try {
    // Offsets such as +01:00 are no names.
    return /^[A-Za-z]/.test(name) && new Intl.DateTimeFormat('en', { timeZone: name }) !== undefined;
  } catch {
    return false;
  }
}

const ITEM = 'sluice-settings';

/** The settings in force: the defaults until {@link followSettings} reads what is stored. */
export const settings = signal<Settings>(parseSettings(null));

/** The time zone of the browser. */
export const BROWSER_ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** The time zone that times are shown in, and days are of. */
export const timeZone = computed(() => settings.value.timeZone || BROWSER_ZONE);

/** What days and weeks of reports are by. */
export const calendar = computed<Calendar>(() => ({ timeZone: timeZone.value, weekStart: settings.value.weekStart }));

/** The colors that the page has. */
export const theme = computed(() => settings.value.theme);

/** Changes settings, and keeps them. */
export function changeSettings(change: Partial<Settings>): void {
  settings.value = { ...settings.value, ...change };
  localStorage.setItem(ITEM, JSON.stringify(settings.value));
}

/** Lets Home show a dashboard, or no longer. The one that was pinned first gives way to more than {@link PINNED_MAX}. */
export function pinDashboard(id: string, isPinned: boolean): void {
  const others = settings.value.pinned.filter((other) => other !== id);
  changeSettings({ pinned: isPinned ? [...others, id].slice(-PINNED_MAX) : others });
}

/** Reads the stored settings, takes over what another tab changes from now on, and gives the page its colors. */
export function followSettings(): void {
  settings.value = parseSettings(localStorage.getItem(ITEM));
  effect(() => {
    document.documentElement.style.colorScheme = theme.value === 'system' ? '' : theme.value;
  });
  addEventListener('storage', ({ key, newValue }) => {
    if (key === ITEM) settings.value = parseSettings(newValue);
  });
}
