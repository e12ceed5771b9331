import type { ComponentChildren } from 'preact';
import { useRef } from 'preact/hooks';
import { ConditionFields, NEW_CONDITION } from './condition-fields.tsx';
import { type FieldDescription, FilterField } from './filter-field.tsx';
import type { Condition, Filters } from './filter-params.ts';
import type { Subject } from './suggestions.ts';
import { type Apply, useFilters } from './use-filters.ts';

/** What a form has apart from fields, each for one parameter. */
interface Controls {
  /** The parameters that they have. */
  readonly names: readonly string[];
  readonly render: (filters: Filters, onChange: (filters: Filters) => void) => ComponentChildren;
}

interface FilterFormProps {
  readonly params: URLSearchParams;
  /** They are behind a button if the form applies by itself. */
  readonly fields: readonly FieldDescription[];
  /** Controls that stand before the fields. Default: none. */
  readonly controls?: Controls;
  /** Whose names and values are suggested. Default: those of events. */
  readonly of?: Subject;
  /** Returns how many steps there are that a filter may be of. Default: none. */
  readonly stepsOf?: (filters: Filters) => number;
  /** Returns what is missing or wrong, as sentences. With it the form applies by itself. Default: a button applies it. */
  readonly missingOf?: (filters: Filters) => readonly string[];
  readonly onApply: Apply;
}

/** A form for the parameters of a page: fields, filters, and all others to be removed. */
export function FilterForm({ params, fields, controls, of = 'event', stepsOf, missingOf, onApply }: FilterFormProps) {
  const form = useRef<HTMLFormElement>(null);
  const names = [...(controls?.names ?? []), ...fields.map(({ name }) => name)];
  const { filters, setFilters, missing, apply } = useFilters({ form, params, names, missingOf, onApply });
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    apply();
  };
  const inputs = fields.map((field) => (
    <FilterField
      key={field.name}
      field={field}
      value={filters.fields[field.name] ?? ''}
      onChange={(value) => setFilters({ ...filters, fields: { ...filters.fields, [field.name]: value } })}
    />
  ));
  return (
    <form class="filters" ref={form} onSubmit={submit} aria-label="Filters">
      {controls?.render(filters, setFilters)}
      {!missingOf && <div class="fields">{inputs}</div>}
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
        {/* Enter applies the form in any case. */}
        <button type="submit" class={missingOf ? 'hidden' : 'primary'} tabIndex={missingOf ? -1 : 0}>
          Apply
        </button>
      </Conditions>
      {missingOf && (
        <>
          <details open={fields.some(({ name }) => params.has(name))}>
            <summary>More</summary>
            <div class="fields">{inputs}</div>
          </details>
          <p role="status" class="muted">
            {missing.join(' ')}
          </p>
        </>
      )}
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
