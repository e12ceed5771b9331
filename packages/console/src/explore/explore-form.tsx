import { useId } from 'preact/hooks';
import {
  COUNTS,
  dateIn,
  dayText,
  hrefOf,
  joinList,
  parseMeasure,
  RANGE_DEFAULT,
  RANGES,
  STATISTICS_OF_PROPERTY,
  splitList,
  startOf,
  timeZone,
  without,
} from '../base/base.ts';
import {
  Combobox,
  DAY_FIELDS,
  EVENT_FIELD,
  type FieldDescription,
  FilterField,
  FilterForm,
  type Filters,
  NameBox,
  suggestEvents,
  suggestGroups,
  suggestNumbers,
} from '../filters/filters.ts';
import type { Report } from './reports.ts';
import { moveStep, removeStep, STEPS_MAX, STEPS_MIN, stepsOf, withSteps } from './steps.ts';

const COHORT_INTERVALS = [
  ['day', 'Day'],
  ['week', 'Week'],
  ['month', 'Month'],
] as const;

const INTERVALS: FieldDescription = {
  name: 'interval',
  label: 'Interval',
  options: [
    ['', 'Automatic'],
    ['minute', 'Minute'],
    ['hour', 'Hour'],
    ...COHORT_INTERVALS,
    ['none', 'None: totals only'],
  ],
};

/** Who a funnel and retention count. */
function byField(label: string): FieldDescription {
  return {
    name: 'by',
    label,
    options: [
      ['', 'Users'],
      ['organization', 'Organizations'],
    ],
  };
}

/** The fields of each report, apart from what has more than a value. */
const FIELDS: Readonly<Record<Report, readonly FieldDescription[]>> = {
  series: [
    INTERVALS,
    {
      name: 'compare',
      label: 'Compare with',
      options: [
        ['', 'Nothing'],
        ['previous', 'The time before'],
      ],
    },
    { name: 'groups', label: 'Groups', placeholder: '10' },
    { name: 'markers', label: 'Mark when this happened', placeholder: 'deployed', suggest: suggestEvents },
  ],
  funnel: [byField('Who goes through it'), { name: 'within', label: 'Within', placeholder: '7d' }],
  retention: [
    byField('Who comes back'),
    EVENT_FIELD,
    { name: 'returnEvent', label: 'Return event', placeholder: 'the same', suggest: suggestEvents },
    { name: 'interval', label: 'Cohorts by', options: [['', 'Automatic'], ...COHORT_INTERVALS] },
    { name: 'periods', label: 'Intervals', placeholder: '12' },
  ],
  values: [EVENT_FIELD, { name: 'prefix', label: 'Values begin with' }],
};

const RANGE_NAMES = ['range', 'startDate', 'endDate'] as const;

/** The parameters whose controls are below, or elsewhere on the page. */
const CONTROLLED: Readonly<Record<Report, readonly string[]>> = {
  series: ['report', 'view', 'form', 'event', 'measure', ...RANGE_NAMES, 'groupBy'],
  funnel: ['report', 'view', 'steps', ...RANGE_NAMES, 'groupBy'],
  retention: ['report', 'view', ...RANGE_NAMES, 'groupBy'],
  values: ['report', 'view', 'property', ...RANGE_NAMES],
};

interface ExploreFormProps {
  readonly report: Report;
  readonly params: URLSearchParams;
}

/** The one form of all reports: what is counted, in which time, of which events. */
export function ExploreForm({ report, params }: ExploreFormProps) {
  return (
    <FilterForm
      params={params}
      fields={FIELDS[report]}
      stepsOf={(filters) => (report === 'funnel' ? stepsOf(filters).length : 0)}
      controls={{
        names: CONTROLLED[report],
        render: (filters, onChange) => <Controls report={report} filters={filters} onChange={onChange} />,
      }}
      onApply={(applied) => {
        location.hash = hrefOf(['explore'], applied.get('range') === CUSTOM ? without(applied, 'range') : applied);
      }}
    />
  );
}

interface ControlProps {
  readonly filters: Filters;
  readonly onChange: (filters: Filters) => void;
}

function Controls({ report, filters, onChange }: ControlProps & { readonly report: Report }) {
  const set = (name: string, value: string) => onChange(withFields(filters, { [name]: value }));
  const groupBy = filters.fields['groupBy'] ?? '';
  return (
    <>
      {report === 'funnel' && <Steps filters={filters} onChange={onChange} />}
      {report === 'series' && (
        <>
          <FilterField
            field={EVENT_FIELD}
            value={filters.fields['event'] ?? ''}
            onChange={(value) => set('event', value)}
          />
          <MeasureFields value={filters.fields['measure'] ?? ''} onChange={(value) => set('measure', value)} />
        </>
      )}
      {report === 'values' && (
        <NameBox
          label="Property"
          value={filters.fields['property'] ?? ''}
          suggest={suggestGroups}
          onChange={(value) => set('property', value)}
        />
      )}
      <RangeFields filters={filters} onChange={onChange} />
      {report === 'series' && <Breakdown value={groupBy} onChange={(value) => set('groupBy', value)} />}
      {(report === 'funnel' || report === 'retention') && (
        <NameBox
          label="Break down by"
          value={groupBy}
          suggest={suggestGroups}
          onChange={(value) => set('groupBy', value)}
        />
      )}
    </>
  );
}

function withFields(filters: Filters, changed: Readonly<Record<string, string>>): Filters {
  return { ...filters, fields: { ...filters.fields, ...changed } };
}

interface FieldProps {
  readonly value: string;
  readonly onChange: (value: string) => void;
}

/** What is measured: a count, or a statistic of a property. */
function MeasureFields({ value, onChange }: FieldProps) {
  const { kind, property } = parseMeasure(value === '' ? 'count' : value);
  const choices = [...COUNTS, ...STATISTICS_OF_PROPERTY.map(([name, label]) => [name, `${label} of …`] as const)];
  const options = choices.some(([name]) => name === kind) ? choices : [...choices, [kind, kind] as const];
  const choose = (chosen: string) => {
    const isCount = COUNTS.some(([name]) => name === chosen);
    onChange(isCount ? chosen : `${chosen}:${property ?? ''}`);
  };
  return (
    <>
      <FilterField field={{ name: 'measure', label: 'Measure', options }} value={kind} onChange={choose} />
      {property !== undefined && (
        <NameBox
          label="Number property"
          value={property}
          suggest={suggestNumbers}
          onChange={(changed) => onChange(`${kind}:${changed}`)}
        />
      )}
    </>
  );
}

/** The range of a form while days count; no address has it. */
const CUSTOM = 'custom';

const RANGE_OPTIONS = [
  ...Object.entries(RANGES).map(([name, { label }]) => [name, label] as const),
  [CUSTOM, 'Custom'],
] as const;

/** The time: one that ends now, or the days from one to another. */
function RangeFields({ filters, onChange }: ControlProps) {
  const { range = '', startDate = '', endDate = '' } = filters.fields;
  const isCustom = range === CUSTOM || startDate !== '' || endDate !== '';
  const choose = (chosen: string) => {
    const now = new Date();
    const dayOf = (time: Date) => dayText(dateIn(timeZone.value, time.getTime()));
    const days = {
      startDate: dayOf(startOf(range || RANGE_DEFAULT, timeZone.value, now)),
      endDate: dayOf(now),
    };
    onChange(
      withFields(
        filters,
        chosen === CUSTOM ? { range: CUSTOM, ...days } : { range: chosen, startDate: '', endDate: '' },
      ),
    );
  };
  return (
    <>
      <FilterField
        field={{ name: 'range', label: 'Range', options: RANGE_OPTIONS }}
        value={isCustom ? CUSTOM : range || RANGE_DEFAULT}
        onChange={choose}
      />
      {isCustom &&
        DAY_FIELDS.map((field) => (
          <FilterField
            key={field.name}
            field={field}
            value={filters.fields[field.name] ?? ''}
            onChange={(value) => onChange(withFields(filters, { range: CUSTOM, [field.name]: value }))}
          />
        ))}
    </>
  );
}

/** Fields for the one or two names that a chart is broken down by. */
function Breakdown({ value, onChange }: FieldProps) {
  const names = splitList(value);
  const [first = '', second = '', ...more] = names;
  const change = (...changed: readonly string[]) =>
    onChange(joinList([...changed, ...more].filter((name) => name !== '')));
  return (
    <>
      <NameBox
        label="Break down by"
        value={first}
        suggest={suggestGroups}
        onChange={(changed) => change(changed, second)}
      />
      {(first !== '' || second !== '') && (
        <NameBox
          label="Then by"
          value={second}
          suggest={suggestGroups}
          onChange={(changed) => change(first, changed)}
        />
      )}
    </>
  );
}

/** The steps of a funnel in their order. */
function Steps({ filters, onChange }: ControlProps) {
  const steps = stepsOf(filters);
  const id = useId();
  // The focus goes with the step, whose new place has a button already.
  const move = (from: number, to: number) => {
    onChange(moveStep(filters, from, to));
    document.getElementById(`${id}-${to}-${from < to ? 'down' : 'up'}`)?.focus();
  };
  return (
    <fieldset class="steps">
      <legend>Steps, in their order</legend>
      <ol>
        {steps.map((step, index) => (
          <li key={index}>
            <Combobox
              label={`Step ${index + 1}`}
              isLabelHidden
              value={step}
              placeholder="Event"
              suggest={suggestEvents}
              onChange={(value) => onChange(withSteps(filters, steps.with(index, value)))}
            />
            <button
              type="button"
              id={`${id}-${index}-up`}
              aria-disabled={index === 0}
              aria-label={`Move step ${index + 1} up`}
              onClick={() => index > 0 && move(index, index - 1)}
            >
              ↑
            </button>
            <button
              type="button"
              id={`${id}-${index}-down`}
              aria-disabled={index === steps.length - 1}
              aria-label={`Move step ${index + 1} down`}
              onClick={() => index < steps.length - 1 && move(index, index + 1)}
            >
              ↓
            </button>
            {steps.length > STEPS_MIN && (
              <button type="button" onClick={() => onChange(removeStep(filters, index))}>
                Remove<span class="hidden"> step {index + 1}</span>
              </button>
            )}
          </li>
        ))}
      </ol>
      {steps.length < STEPS_MAX && (
        <button type="button" onClick={() => onChange(withSteps(filters, [...steps, '']))}>
          Add a step
        </button>
      )}
    </fieldset>
  );
}
