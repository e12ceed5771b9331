import { useId } from 'preact/hooks';
import { Combobox } from './combobox.tsx';
import type { FieldDescription } from './fields.ts';

const DAY = /^(?:\d{4}-\d{2}-\d{2})?$/;

interface FilterFieldProps {
  readonly field: FieldDescription;
  readonly value: string;
  readonly onChange: (value: string) => void;
}

/** The control of a parameter: a choice, a day, a text, or a text with suggestions. */
export function FilterField({ field, value, onChange }: FilterFieldProps) {
  const { label, placeholder, options, suggest } = field;
  if (suggest) {
    return (
      <Combobox label={label} value={value} placeholder={placeholder ?? ''} suggest={suggest} onChange={onChange} />
    );
  }
  if (options) {
    // What the address has is shown, also where it is none of the choices.
    const all = options.some(([one]) => one === value) ? options : [...options, [value, value] as const];
    return (
      <label>
        {label}
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

type TextFieldProps = Pick<FieldDescription, 'label' | 'placeholder' | 'isDay'> & Omit<FilterFieldProps, 'field'>;

function TextField({ label, placeholder, isDay = false, value, onChange }: TextFieldProps) {
  const id = useId();
  const change = ({ currentTarget }: { readonly currentTarget: HTMLInputElement }) => onChange(currentTarget.value);
  return (
    <label for={id}>
      {label}
      {/* A time is no day: an address may have one. */}
      {isDay && DAY.test(value) ? (
        <input id={id} type="date" value={value} onInput={change} />
      ) : (
        <input id={id} value={value} placeholder={placeholder} onInput={change} />
      )}
    </label>
  );
}
