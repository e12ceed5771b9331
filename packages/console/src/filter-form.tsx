import { useEffect, useState } from 'preact/hooks';
import type { FieldDescription } from './fields.ts';
import { type Condition, type Filters, filterParams, OPERATORS, parseFilters } from './filters.ts';
import { menus } from './menus.ts';

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

const NEW_CONDITION: Condition = { name: 'properties.', operator: 'eq', value: '' };

interface FilterFormProps {
  readonly params: URLSearchParams;
  readonly fields: readonly FieldDescription[];
  readonly onApply: (params: URLSearchParams) => void;
}

/** A form for the parameters of a page: fields, conditions, and all others as text. */
export function FilterForm({ params, fields, onApply }: FilterFormProps) {
  const parse = () =>
    parseFilters(
      params,
      fields.map(({ name }) => name),
    );
  const [filters, setFilters] = useState<Filters>(parse);
  useEffect(() => setFilters(parse()), [params.toString()]);
  const setCondition = (index: number, condition: Condition | undefined) => {
    setFilters({ ...filters, conditions: filters.conditions.toSpliced(index, 1, ...(condition ? [condition] : [])) });
  };
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    onApply(filterParams(filters));
  };
  return (
    <form class="filters" onSubmit={submit} aria-label="Filters">
      <div class="fields">
        {fields.map((field) => (
          <FilterField
            key={field.name}
            field={field}
            value={filters.fields[field.name] ?? ''}
            onChange={(value) => setFilters({ ...filters, fields: { ...filters.fields, [field.name]: value } })}
          />
        ))}
        <label class="other">
          Other parameters
          <input
            value={filters.other}
            placeholder="anonymousId=…"
            onInput={({ currentTarget }) => setFilters({ ...filters, other: currentTarget.value })}
          />
        </label>
      </div>
      <datalist id="suggestions-properties">
        {menus.value.properties.map(({ path }) => (
          <option key={path} value={path} />
        ))}
      </datalist>
      {filters.conditions.map((condition, index) => (
        <ConditionFields key={index} condition={condition} onChange={(changed) => setCondition(index, changed)} />
      ))}
      <div class="actions">
        <button
          type="button"
          onClick={() => setFilters({ ...filters, conditions: [...filters.conditions, NEW_CONDITION] })}
        >
          Add a filter
        </button>
        <button type="submit" class="primary">
          Apply
        </button>
      </div>
    </form>
  );
}

interface FilterFieldProps {
  readonly field: FieldDescription;
  readonly value: string;
  readonly onChange: (value: string) => void;
}

function FilterField({ field, value, onChange }: FilterFieldProps) {
  const { name, label, placeholder, options, suggestions } = field;
  const listId = `suggestions-${name}`;
  if (options) {
    return (
      <label>
        {label}
        <select value={value} onChange={({ currentTarget }) => onChange(currentTarget.value)}>
          {options.map(([one, text]) => (
            <option key={one} value={one}>
              {text}
            </option>
          ))}
        </select>
      </label>
    );
  }
  return (
    <label>
      {label}
      <input
        value={value}
        placeholder={placeholder}
        list={suggestions && listId}
        onInput={({ currentTarget }) => onChange(currentTarget.value)}
      />
      {suggestions && (
        <datalist id={listId}>
          {suggestions(menus.value).map((one) => (
            <option key={one} value={one} />
          ))}
        </datalist>
      )}
    </label>
  );
}

interface ConditionFieldsProps {
  readonly condition: Condition;
  /** Called without a condition to remove it. */
  readonly onChange: (condition?: Condition) => void;
}

function ConditionFields({ condition, onChange }: ConditionFieldsProps) {
  const { name, operator, value } = condition;
  return (
    <fieldset class="condition">
      <legend>Filter on {name}</legend>
      <input
        aria-label="Property or field"
        value={name}
        list="suggestions-properties"
        onInput={({ currentTarget }) => onChange({ ...condition, name: currentTarget.value })}
      />
      <select
        aria-label="Operator"
        value={operator}
        onChange={({ currentTarget }) => onChange({ ...condition, operator: currentTarget.value })}
      >
        {OPERATORS.map((one) => (
          <option key={one} value={one}>
            {OPERATOR_LABELS[one]}
          </option>
        ))}
      </select>
      <input
        aria-label="Value"
        value={value}
        onInput={({ currentTarget }) => onChange({ ...condition, value: currentTarget.value })}
      />
      <button type="button" onClick={() => onChange()}>
        Remove
      </button>
    </fieldset>
  );
}
