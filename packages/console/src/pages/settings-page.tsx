import { useState } from 'preact/hooks';
import {
  BROWSER_ZONE,
  changeSettings,
  isTimeZone,
  type Settings,
  settings,
  THEMES,
  WEEK_STARTS,
} from '../base/base.ts';
import { deferred, Time } from '../parts/parts.ts';
import { RemoveExample } from './example-data.tsx';

/** Loaded with the page that shows them. */
const NamingForm = deferred(() => import('./naming-form.tsx').then(({ NamingForm }) => NamingForm));
const IdentityForm = deferred(() => import('./identity-form.tsx').then(({ IdentityForm }) => IdentityForm));
const FastPropertiesSection = deferred(() =>
  import('./fast-properties.tsx').then(({ FastPropertiesSection }) => FastPropertiesSection),
);

/** What the day of the week is called. */
const WEEK_START_NAMES: Readonly<Record<Settings['weekStart'], string>> = {
  monday: 'Monday',
  saturday: 'Saturday',
  sunday: 'Sunday',
};

const THEME_NAMES: Readonly<Record<Settings['theme'], string>> = {
  system: 'As the system',
  light: 'Light',
  dark: 'Dark',
};

/** The settings of this browser. */
export function SettingsPage() {
  const { weekStart, theme, shortcuts } = settings.value;
  return (
    <>
      <h1>Settings</h1>
      <p class="muted">They are kept in this browser, for every key.</p>
      <form class="settings" onSubmit={(event) => event.preventDefault()} aria-label="Settings">
        <TimeZoneField />
        <Choice
          label="Weeks begin on"
          names={WEEK_START_NAMES}
          choices={WEEK_STARTS}
          chosen={weekStart}
          onChoose={(chosen) => changeSettings({ weekStart: chosen })}
        />
        <Choice
          label="Colors"
          names={THEME_NAMES}
          choices={THEMES}
          chosen={theme}
          onChoose={(chosen) => changeSettings({ theme: chosen })}
        />
        <label class="choice">
          <input
            type="checkbox"
            checked={shortcuts}
            onChange={({ currentTarget }) => changeSettings({ shortcuts: currentTarget.checked })}
          />
          Keys such as <kbd>g</kbd> <kbd>e</kbd> open pages; <kbd>?</kbd> lists them
        </label>
      </form>
      <NamingForm />
      <IdentityForm />
      <FastPropertiesSection />
      <h2>Example data of the workspace</h2>
      <div class="bar">
        <RemoveExample />
      </div>
    </>
  );
}

interface ChoiceProps<Value extends string> {
  readonly label: string;
  readonly choices: readonly Value[];
  readonly names: Readonly<Record<Value, string>>;
  readonly chosen: Value;
  readonly onChoose: (value: Value) => void;
}

function Choice<Value extends string>({ label, choices, names, chosen, onChoose }: ChoiceProps<Value>) {
  return (
    <label>
      {label}
      <select
        value={chosen}
        onChange={({ currentTarget }) => {
          const value = choices.find((one) => one === currentTarget.value);
          if (value) onChoose(value);
        }}
      >
        {choices.map((value) => (
          <option key={value} value={value}>
            {names[value]}
          </option>
        ))}
      </select>
    </label>
  );
}

/** A name counts as soon as the browser knows it. */
function TimeZoneField() {
  const [text, setText] = useState(settings.value.timeZone);
  const isKnown = text === '' || isTimeZone(text);
  return (
    <div>
      <label>
        Time zone
        <input
          value={text}
          placeholder={`${BROWSER_ZONE} (this browser)`}
          list="time-zones"
          aria-invalid={!isKnown}
          aria-describedby="time-zone-state"
          onInput={({ currentTarget: { value } }) => {
            setText(value);
            if (value === '' || isTimeZone(value)) changeSettings({ timeZone: value });
          }}
        />
      </label>
      <datalist id="time-zones">
        {Intl.supportedValuesOf('timeZone').map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      <p id="time-zone-state" class="muted" role="status">
        {isKnown ? (
          <>
            Now it is <Time value={new Date().toISOString()} full />.
          </>
        ) : (
          `"${text}" is not the name of a time zone; write one such as Europe/Berlin.`
        )}
      </p>
    </div>
  );
}
