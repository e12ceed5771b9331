import { useId } from 'preact/hooks';
import { Combobox } from './combobox.tsx';
import { IDENTITY } from './filter-params.ts';
import { type Suggest, suggestEvents, valuesOf } from './suggestions.ts';

/** A parameter that has a field of its own in a form. */
export interface FieldDescription {
  readonly name: string;
  readonly label: string;
  /** Whether the label is only read aloud. Default: it is shown. */
  readonly isLabelHidden?: boolean;
  readonly placeholder?: string;
  /** The values that it may have, each with its label; without them it is text. */
  readonly options?: readonly (readonly [value: string, label: string])[];
  /** Suggests values, beside any other text. */
  readonly suggest?: Suggest;
  /** Whether it is a day. Default: no. */
  readonly isDay?: boolean;
}

export const EVENT_FIELD: FieldDescription = {
  name: 'event',
  label: 'Event',
  placeholder: 'any',
  suggest: suggestEvents,
};

export const DAY_FIELDS: readonly FieldDescription[] = [
  { name: 'startDate', label: 'From', isDay: true },
  { name: 'endDate', label: 'To', isDay: true },
];

/** Whose the events are of visitors who have not signed in yet. */
export const IDENTITY_FIELD: FieldDescription = {
  name: IDENTITY,
  label: 'Visitors before they sign in',
  options: [
    ['', 'are as the settings say'],
    ['linked', 'are the users that they become'],
    ['raw', 'are nobody'],
  ],
};

/** The fields of the page of events. */
export const EVENT_FIELDS: readonly FieldDescription[] = [
  EVENT_FIELD,
  { name: 'userId', label: 'User', suggest: valuesOf('userId') },
  { name: 'groupId', label: 'Organization', suggest: valuesOf('groupId') },
  ...DAY_FIELDS,
  IDENTITY_FIELD,
];

/** Whether a text is a day or empty; an address may have a time in its place. */
export function isDay(text: string): boolean {
  return /^(?:\d{4}-\d{2}-\d{2})?$/.test(text);
}

interface FilterFieldProps {
  readonly field: FieldDescription;
  readonly value: string;
  readonly onChange: (value: string) => void;
}

/** The control of a parameter: a choice, a day, a text, or a text with suggestions. */
export function FilterField({ field, value, onChange }: FilterFieldProps) {
  const { label, isLabelHidden = false, placeholder = '', options, suggest } = field;
  if (suggest) return <Combobox {...{ label, isLabelHidden, value, placeholder, suggest, onChange }} />;
  if (options) {
    // What the address has is shown, also where it is none of the choices.
    const all = options.some(([one]) => one === value) ? options : [...options, [value, value] as const];
    return (
      <label>
        <span class={isLabelHidden ? 'hidden' : undefined}>{label}</span>
        <select value={value} onChange={({ currentTarget }) => onChange(currentTarget.value)}>
          {all.map(([one, text]) => (
            <option key={one} value={one}>
              {text}
            </option>
          ))}
        </select>
      </label>
    );
  }
  return <TextField {...field} value={value} onChange={onChange} />;
}

type TextFieldProps = Pick<FieldDescription, 'label' | 'isLabelHidden' | 'placeholder' | 'isDay'> &
  Omit<FilterFieldProps, 'field'>;

function TextField({
  label,
  isLabelHidden = false,
  placeholder,
  isDay: mayBeDay = false,
  value,
  onChange,
}: TextFieldProps) {
  const id = useId();
  const change = ({ currentTarget }: { readonly currentTarget: HTMLInputElement }) => onChange(currentTarget.value);
  return (
    <label for={id}>
      <span class={isLabelHidden ? 'hidden' : undefined}>{label}</span>
      {mayBeDay && isDay(value) ? (
        <input id={id} type="date" value={value} onInput={change} />
      ) : (
        <input id={id} value={value} placeholder={placeholder} onInput={change} />
      )}
    </label>
  );
}
