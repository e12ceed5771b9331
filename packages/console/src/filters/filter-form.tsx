import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useState } from 'preact/hooks';
import { ConditionFields } from './condition-fields.tsx';
import { type FieldDescription, FilterField } from './filter-field.tsx';
import { type Condition, type Filters, filterParams, parseFilters } from './filter-params.ts';

const NEW_CONDITION: Condition = { name: '', operator: 'eq', value: '' };

/** What a form has apart from fields, each for one parameter. */
interface Controls {
  /** The parameters that they have. */
  readonly names: readonly string[];
  readonly render: (filters: Filters, onChange: (filters: Filters) => void) => ComponentChildren;
}

interface FilterFormProps {
  readonly params: URLSearchParams;
  readonly fields: readonly FieldDescription[];
  /** Controls that stand before the fields. Default: none. */
  readonly controls?: Controls;
  /** Whether the filters are those of events, whose names and values are suggested. Default: yes. */
  readonly ofEvents?: boolean;
  /** Returns how many steps there are that a filter may be of. Default: none. */
  readonly stepsOf?: (filters: Filters) => number;
  readonly onApply: (params: URLSearchParams) => void;
}

/** A form for the parameters of a page: fields, filters, and all others to be removed. */
export function FilterForm({ params, fields, controls, ofEvents = true, stepsOf, onApply }: FilterFormProps) {
  const parse = () => parseFilters(params, [...(controls?.names ?? []), ...fields.map(({ name }) => name)]);
  const [filters, setFilters] = useState<Filters>(parse);
  // At once: a later effect would take away what somebody has typed by then.
  useLayoutEffect(() => setFilters(parse()), [params.toString()]);
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
        {controls?.render(filters, setFilters)}
        {fields.map((field) => (
          <FilterField
            key={field.name}
            field={field}
            value={filters.fields[field.name] ?? ''}
            onChange={(value) => setFilters({ ...filters, fields: { ...filters.fields, [field.name]: value } })}
          />
        ))}
      </div>
      <OtherParameters
        parameters={filters.other}
        onRemove={(index) => setFilters({ ...filters, other: filters.other.toSpliced(index, 1) })}
      />
      {filters.conditions.map((condition, index) => (
        <ConditionFields
          key={index}
          condition={condition}
          ofEvents={ofEvents}
          steps={stepsOf?.(filters) ?? 0}
          onChange={(changed) => setCondition(index, changed)}
        />
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

interface OtherParametersProps {
  readonly parameters: Filters['other'];
  readonly onRemove: (index: number) => void;
}

/** What else the address has. */
function OtherParameters({ parameters, onRemove }: OtherParametersProps) {
  if (parameters.length === 0) return null;
  return (
    <ul class="chips" aria-label="Also in the address">
      {parameters.map(([name, value], index) => (
        <li key={index}>
          <bdi>{name}</bdi> = <bdi>{value}</bdi>
          <button type="button" onClick={() => onRemove(index)}>
            Remove<span class="hidden"> {name}</span>
          </button>
        </li>
      ))}
    </ul>
  );
}
