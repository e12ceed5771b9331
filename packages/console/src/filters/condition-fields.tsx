import { useMemo } from 'preact/hooks';
import { labelOfName } from '../base/base.ts';
import { Combobox, NameBox } from './combobox.tsx';
import { type Condition, OPERATORS, stepOf } from './filter-params.ts';
import { itemsOf, type Suggest, suggestFilters, valuesOf } from './suggestions.ts';

const OPERATOR_LABELS: Readonly<Record<string, string>> = {
  eq: 'is',
  ne: 'is not',
  in: 'is one of',
  exists: 'exists',
  lt: '<',
  lte: '≤',
  gt: '>',
  gte: '≥',
  prefix: 'begins with',
  contains: 'contains',
};

const NOTHING: Suggest = async () => [];

interface ConditionFieldsProps {
  readonly condition: Condition;
  /** Whether the names and values are those of events. */
  readonly ofEvents: boolean;
  /** How many steps there are, one of which it may be of. */
  readonly steps: number;
  /** Called without a condition to remove it. */
  readonly onChange: (condition?: Condition) => void;
}

/** A filter: a field or property, an operator and a value. */
export function ConditionFields({ condition, ofEvents, steps, onChange }: ConditionFieldsProps) {
  const { operator } = condition;
  const { step, name } = stepOf(condition.name);
  const rename = (step: number | undefined, name: string) =>
    onChange({ ...condition, name: step === undefined ? name : `step${step}.${name}` });
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
        suggest={ofEvents ? suggestFilters : NOTHING}
        onChange={(changed) => rename(step, changed)}
      />
      <select
        aria-label="Operator"
        value={operator}
        onChange={({ currentTarget: { value } }) => onChange(withOperator(condition, value))}
      >
        {/* One that query-api does not know is shown: it says so. */}
        {[...new Set<string>([...OPERATORS, operator])].map((one) => (
          <option key={one} value={one}>
            {OPERATOR_LABELS[one] ?? one}
          </option>
        ))}
      </select>
      <ValueField condition={condition} name={ofEvents ? name : ''} onChange={onChange} />
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
  /** What values are suggested of; empty: none are. */
  readonly name: string;
  readonly onChange: (condition: Condition) => void;
}

function ValueField({ condition, name, onChange }: ValueFieldProps) {
  const { operator, value } = condition;
  const suggest = useMemo(() => (operator === 'in' ? itemsOf(valuesOf(name)) : valuesOf(name)), [operator, name]);
  const change = (changed: string) => onChange({ ...condition, value: changed });
  if (operator === 'exists' && ['true', 'false'].includes(value)) {
    return (
      <select aria-label="Value" value={value} onChange={({ currentTarget }) => change(currentTarget.value)}>
        <option value="true">yes</option>
        <option value="false">no</option>
      </select>
    );
  }
  return <Combobox label="Value" isLabelHidden value={value} suggest={suggest} onChange={change} />;
}
