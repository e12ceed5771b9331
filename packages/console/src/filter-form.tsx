import { useEffect, useState } from 'preact/hooks';
import { type Condition, type Field, type Filters, filterParams, OPERATORS, parseFilters } from './filters.ts';

const LABELS: Readonly<Record<Field, string>> = {
  event: 'Event',
  type: 'Type',
  userId: 'User',
  groupId: 'Organization',
  startDate: 'From',
  endDate: 'To',
};

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
  /** The fields to show. */
  readonly fields: readonly Field[];
  readonly onApply: (params: URLSearchParams) => void;
}

/** A form for the parameters of `GET /events`. */
export function FilterForm({ params, fields, onApply }: FilterFormProps) {
  const [filters, setFilters] = useState<Filters>(() => parseFilters(params));
  const query = params.toString();
  useEffect(() => setFilters(parseFilters(params)), [query]);
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
          <label key={field}>
            {LABELS[field]}
            <input
              value={filters.fields[field]}
              placeholder={field.endsWith('Date') ? '2026-01-31' : undefined}
              onInput={({ currentTarget }) =>
                setFilters({ ...filters, fields: { ...filters.fields, [field]: currentTarget.value } })
              }
            />
          </label>
        ))}
        <label class="other">
          Other parameters
          <input
            value={filters.other}
            placeholder="orderByDirection=ASC&limit=100"
            onInput={({ currentTarget }) => setFilters({ ...filters, other: currentTarget.value })}
          />
        </label>
      </div>
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
