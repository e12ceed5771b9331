import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { type Alert, type Digest, type StoredDashboard, timeZone, type View } from '../base/base.ts';
import { CONDITIONS, type Condition, UNITS } from './alert-texts.ts';

interface AlertFormProps {
  readonly views: readonly View[];
  /** What the fields begin with. Default: a new alert. */
  readonly alert?: Partial<Alert>;
  readonly label: string;
  readonly action: string;
  readonly onGiven: (given: object) => void;
}

/** A form for a new alert, or a change of one. */
export function AlertForm({ views, alert = {}, label, action, onGiven }: AlertFormProps) {
  const [is, setIs] = useState<Condition['is']>(alert.condition?.is ?? 'below');
  const { window = '1h' } = alert;
  const contentOf = (text: (name: string) => string) => ({
    ...{ name: text('name'), view: text('view'), condition: conditionOf(is, Number(text('limit'))) },
    ...{ window: `${text('count')}${text('unit')}`, for: Number(text('for')) },
  });
  return (
    <MessageForm {...{ label, action, receiver: alert, contentOf, onGiven }}>
      <label>
        Name
        <input name="name" required maxLength={200} defaultValue={alert.name ?? ''} />
      </label>
      <label>
        Number
        <select name="view" required>
          {views.map(({ id, name }) => (
            <option key={id} value={id} selected={id === alert.view}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <label>
        Fires while it
        <select value={is} onChange={({ currentTarget }) => setIs(currentTarget.value as Condition['is'])}>
          {Object.entries(CONDITIONS).map(([name, title]) => (
            <option key={name} value={name}>
              {title}
            </option>
          ))}
        </select>
      </label>
      {is !== 'absent' && (
        <label>
          Limit
          <input type="number" name="limit" step="any" required defaultValue={limitOf(alert.condition)} />
        </label>
      )}
      <label>
        In the last
        <input type="number" name="count" min="1" max="120" required defaultValue={window.slice(0, -1)} />
      </label>
      <label>
        Unit
        <select name="unit">
          {Object.entries(UNITS).map(([unit, title]) => (
            <option key={unit} value={unit} selected={unit === window.at(-1)}>
              {title}
            </option>
          ))}
        </select>
      </label>
      <label>
        Times in a row
        <input type="number" name="for" min="1" max="100" required defaultValue={String(alert.for ?? 1)} />
      </label>
    </MessageForm>
  );
}

function conditionOf(is: Condition['is'], limit: number): Condition {
  if (is === 'absent') return { is };
  return is === 'changes' ? { is, percent: limit } : { is, threshold: limit };
}

function limitOf(condition: Condition | undefined): string {
  if (!condition || condition.is === 'absent') return '';
  return String(condition.is === 'changes' ? condition.percent : condition.threshold);
}

interface DigestFormProps {
  readonly dashboards: readonly StoredDashboard[];
  readonly digest?: Partial<Digest>;
  readonly label: string;
  readonly action: string;
  readonly onGiven: (given: object) => void;
}

/** A form for a new digest, or a change of one. */
export function DigestForm({ dashboards, digest = {}, label, action, onGiven }: DigestFormProps) {
  const contentOf = (text: (name: string) => string) => ({
    dashboard: text('dashboard'),
    hour: Number(text('hour')),
    timeZone: text('timeZone'),
  });
  return (
    <MessageForm {...{ label, action, receiver: digest, contentOf, onGiven }}>
      <label>
        Dashboard
        <select name="dashboard" required>
          {dashboards.map(({ id, name }) => (
            <option key={id} value={id} selected={id === digest.dashboard}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <label>
        Hour of the day
        <input type="number" name="hour" min="0" max="23" required defaultValue={String(digest.hour ?? 8)} />
      </label>
      <label>
        Time zone
        <input name="timeZone" required defaultValue={digest.timeZone ?? timeZone.value} />
      </label>
    </MessageForm>
  );
}

interface MessageFormProps {
  readonly label: string;
  readonly action: string;
  /** Where messages are sent, and how they look, as the fields begin. */
  readonly receiver: Partial<Pick<Alert, 'url' | 'format'>>;
  /** Returns what is given besides. @param text returns what a field has */
  readonly contentOf: (text: (name: string) => string) => object;
  readonly onGiven: (given: object) => void;
  /** The fields of the content. */
  readonly children: ComponentChildren;
}

/** A form of what sends messages. */
function MessageForm({ label, action, receiver, contentOf, onGiven, children }: MessageFormProps) {
  const { url = '', format = 'signed' } = receiver;
  const submit = (submitted: SubmitEvent) => {
    submitted.preventDefault();
    const form = new FormData(submitted.currentTarget as HTMLFormElement);
    const text = (name: string) => String(form.get(name));
    onGiven({ ...contentOf(text), url: text('url'), format: text('format') });
  };
  return (
    <form class="filters" aria-label={label} onSubmit={submit}>
      <div class="fields">
        {children}
        <label>
          Address
          <input type="url" name="url" required placeholder="https://example.com/alerts" defaultValue={url} />
        </label>
        <label>
          Format
          <select name="format">
            <option value="signed" selected={format === 'signed'}>
              signed JSON
            </option>
            <option value="slack" selected={format === 'slack'}>
              as Slack takes them
            </option>
          </select>
        </label>
      </div>
      <div class="bar">
        <button type="submit" class="primary">
          {action}
        </button>
      </div>
    </form>
  );
}
