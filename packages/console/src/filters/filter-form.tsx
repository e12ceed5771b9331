import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useState } from 'preact/hooks';
import { ConditionFields } from './condition-fields.tsx';
import { type FieldDescription, FilterField } from './filter-field.tsx';
import { type Condition, type Filters, filterParams, parseFilters } from './filter-params.ts';
import type { Subject } from './suggestions.ts';

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
  /** Whose names and values are suggested. Default: those of events. */
  readonly of?: Subject;
  /** Returns how many steps there are that a filter may be of. Default: none. */
  readonly stepsOf?: (filters: Filters) => number;
  readonly onApply: (params: URLSearchParams) => void;
}

/** A form for the parameters of a page: fields, filters, and all others to be removed. */
export function FilterForm({ params, fields, controls, of = 'event', stepsOf, onApply }: FilterFormProps) {
  const parse = () => parseFilters(params, [...(controls?.names ?? []), ...fields.map(({ name }) => name)]);
  const [filters, setFilters] = useState<Filters>(parse);
  // At once: a later effect would take away what somebody has typed by then.
  useLayoutEffect(() => setFilters(parse()), [params.toString()]);
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
      <Conditions
        conditions={filters.conditions}
        of={of}
        steps={stepsOf?.(filters) ?? 0}
        onChange={(conditions) => setFilters({ ...filters, conditions })}
      >
        <button type="submit" class="primary">
          Apply
        </button>
      </Conditions>
    </form>
  );
}

interface ConditionsProps {
  readonly conditions: readonly Condition[];
  /** Whose names and values are suggested. Default: those of events. */
  readonly of?: Subject;
  /** How many steps there are that a filter may be of. Default: none. */
  readonly steps?: number;
  readonly onChange: (conditions: readonly Condition[]) => void;
  /** What else can be done, beside adding a filter. */
  readonly children: ComponentChildren;
}

/** The filters of a form, to be added, changed and removed. */
export function Conditions({ conditions, of = 'event', steps = 0, onChange, children }: ConditionsProps) {
  return (
    <>
      {conditions.map((condition, index) => (
        <ConditionFields
          key={index}
          {...{ condition, of, steps }}
          onChange={(changed) => onChange(conditions.toSpliced(index, 1, ...(changed ? [changed] : [])))}
        />
      ))}
      <div class="actions">
        <button type="button" onClick={() => onChange([...conditions, NEW_CONDITION])}>
          Add a filter
        </button>
        {children}
      </div>
    </>
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
