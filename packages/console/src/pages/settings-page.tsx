import { useState } from 'preact/hooks';
import { BROWSER_ZONE, changeSettings, isTimeZone, type Settings, settings, WEEK_STARTS } from '../base/base.ts';
import { Time } from '../parts/parts.ts';

/** What the day of the week is called. */
const WEEK_START_NAMES: Readonly<Record<Settings['weekStart'], string>> = {
  monday: 'Monday',
  saturday: 'Saturday',
  sunday: 'Sunday',
};

/** The settings of this browser. */
export function SettingsPage() {
  const { weekStart, shortcuts } = settings.value;
  return (
    <>
      <h1>Settings</h1>
      <p class="muted">They are kept in this browser, for every key.</p>
      <form class="settings" onSubmit={(event) => event.preventDefault()} aria-label="Settings">
        <TimeZoneField />
        <label>
          Weeks begin on
          <select
            value={weekStart}
            onChange={({ currentTarget }) => {
              const chosen = WEEK_STARTS.find((day) => day === currentTarget.value);
              if (chosen) changeSettings({ weekStart: chosen });
            }}
          >
            {WEEK_STARTS.map((day) => (
              <option key={day} value={day}>
                {WEEK_START_NAMES[day]}
              </option>
            ))}
          </select>
        </label>
        <label class="choice">
          <input
            type="checkbox"
            checked={shortcuts}
            onChange={({ currentTarget }) => changeSettings({ shortcuts: currentTarget.checked })}
          />
          Keys such as <kbd>g</kbd> <kbd>e</kbd> open pages; <kbd>?</kbd> lists them
        </label>
      </form>
    </>
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
            Now it is <Time value={new Date().toISOString()} />.
          </>
        ) : (
          `"${text}" is not the name of a time zone; write one such as Europe/Berlin.`
        )}
      </p>
    </div>
  );
}
