import { useMemo, useState } from 'preact/hooks';
import { isTimeName, labelOfName } from '../base/base.ts';
import { Combobox, NameBox } from './combobox.tsx';
import { isDay } from './filter-field.tsx';
import { type Condition, operatorsOf, renamed, stepOf } from './filter-params.ts';
import { itemsOf, SUBJECTS, type Subject, valuesOfFilter } from './suggestions.ts';

/** A filter that was just added. */
export const NEW_CONDITION: Condition = { name: '', operator: 'eq', value: '' };

interface ConditionFieldsProps {
  readonly condition: Condition;
  /** Whose names and values they are. */
  readonly of: Subject;
  /** How many steps there are, one of which it may be of. */
  readonly steps: number;
  /** Called without a condition to remove it. */
  readonly onChange: (condition?: Condition) => void;
}

/** A filter: a field or property, an operator and a value. Whoever adds it chooses the name next, and then the value. */
export function ConditionFields({ condition, of, steps, onChange }: ConditionFieldsProps) {
  const { operator } = condition;
  /** Another object each time that a name is chosen. */
  const [chosen, setChosen] = useState<object>();
  const { step, name } = stepOf(condition.name);
  const rename = (step: number | undefined, name: string) =>
    onChange(renamed(condition, step === undefined ? name : `step${step}.${name}`));
  const known = operatorsOf(name);
  // One that query-api does not know is shown: it says so.
  const operators = known.some(([one]) => one === operator) ? known : [...known, [operator, operator] as const];
  return (
    <fieldset class="condition">
      <legend class="hidden">Filter on {name === '' ? 'a property' : labelOfName(name)}</legend>
      {(steps > 0 || step !== undefined) && (
        <select
          aria-label="Of which step"
          value={String(step ?? '')}
          onChange={({ currentTarget: { value } }) => rename(value === '' ? undefined : Number(value), name)}
        >
          <option value="">All steps</option>
          {Array.from({ length: Math.max(steps, step ?? 0) }, (_, index) => (
            <option key={index} value={String(index + 1)}>
              Step {index + 1}
            </option>
          ))}
        </select>
      )}
      <NameBox
        label="Property or field"
        isLabelHidden
        placeholder="Property"
        value={name}
        suggest={SUBJECTS[of].suggest}
        comesAfter={condition === NEW_CONDITION ? condition : undefined}
        onChange={(changed) => {
          setChosen(undefined);
          rename(step, changed);
        }}
        onChosen={() => setChosen({})}
      />
      <select
        aria-label="Operator"
        value={operator}
        onChange={({ currentTarget: { value } }) => {
          setChosen(undefined);
          onChange(withOperator(condition, value));
        }}
      >
        {operators.map(([one, label]) => (
          <option key={one} value={one}>
            {label}
          </option>
        ))}
      </select>
      <ValueField condition={condition} of={of} name={name} comesAfter={chosen} onChange={onChange} />
      <button type="button" onClick={() => onChange()}>
        Remove<span class="hidden"> the filter on {labelOfName(name)}</span>
      </button>
    </fieldset>
  );
}

function withOperator(condition: Condition, operator: string): Condition {
  if (operator === 'exists') return { ...condition, operator, value: 'true' };
  return { ...condition, operator, value: condition.operator === 'exists' ? '' : condition.value };
}

interface ValueFieldProps {
  readonly condition: Condition;
  readonly of: Subject;
  /** What values are suggested of. */
  readonly name: string;
  readonly comesAfter: object | undefined;
  readonly onChange: (condition: Condition) => void;
}

function ValueField({ condition, of, name, comesAfter, onChange }: ValueFieldProps) {
  const { operator, value } = condition;
  const suggest = useMemo(() => {
    const values = valuesOfFilter(of, name);
    return operator === 'in' ? itemsOf(values) : values;
  }, [operator, of, name]);
  const change = (changed: string) => onChange({ ...condition, value: changed });
  if (operator === 'exists' && ['true', 'false'].includes(value)) {
    return (
      <select aria-label="Value" value={value} onChange={({ currentTarget }) => change(currentTarget.value)}>
        <option value="true">yes</option>
        <option value="false">no</option>
      </select>
    );
  }
  if (isTimeName(name) && isDay(value)) {
    return (
      <input
        type="date"
        aria-label="Day, UTC"
        value={value}
        onInput={({ currentTarget }) => change(currentTarget.value)}
      />
    );
  }
  // A list gets one more item.
  const openedWith = (list: string) => (operator === 'in' && list !== '' ? `${list},` : '');
  return <Combobox label="Value" isLabelHidden {...{ value, suggest, openedWith, comesAfter }} onChange={change} />;
}
