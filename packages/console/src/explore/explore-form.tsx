import { useId } from 'preact/hooks';
import {
  COUNTS,
  dateIn,
  dayText,
  goTo,
  hrefOf,
  joinList,
  parseMeasure,
  RANGE_DEFAULT,
  RANGES,
  STATISTICS_OF_PROPERTY,
  splitList,
  startOf,
  timeZone,
} from '../base/base.ts';
import {
  Combobox,
  DAY_FIELDS,
  EVENT_FIELD,
  type FieldDescription,
  FilterField,
  FilterForm,
  type Filters,
  IDENTITY_FIELD,
  NameBox,
  suggestEvents,
  suggestGroups,
  suggestNumbers,
} from '../filters/filters.ts';
import { missingOf, moveStep, removeStep, STEPS_MAX, STEPS_MIN, stepsOf, withSteps } from './report-form.ts';
import type { Report } from './reports.ts';

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

/** The fields of each report that are behind a button. */
const FIELDS: Readonly<Record<Report, readonly FieldDescription[]>> = {
  series: [
    INTERVALS,
    { name: 'groups', label: 'Groups', placeholder: '10' },
    { name: 'markers', label: 'Mark when this happened', placeholder: 'deployed', suggest: suggestEvents },
    IDENTITY_FIELD,
  ],
  funnel: [{ name: 'within', label: 'Within', placeholder: '7d' }, IDENTITY_FIELD],
  retention: [
    { name: 'interval', label: 'Cohorts by', options: [['', 'Automatic'], ...COHORT_INTERVALS] },
    { name: 'periods', label: 'Intervals', placeholder: '12' },
    IDENTITY_FIELD,
  ],
  values: [{ name: 'prefix', label: 'Values begin with' }, IDENTITY_FIELD],
};

const RANGE_NAMES = ['range', 'startDate', 'endDate'] as const;

/** The parameters whose controls are in the sentence, or elsewhere on the page. */
const CONTROLLED: Readonly<Record<Report, readonly string[]>> = {
  series: ['report', 'view', 'form', 'measure', 'event', 'groupBy', ...RANGE_NAMES, 'compare'],
  funnel: ['report', 'view', 'by', 'steps', 'groupBy', ...RANGE_NAMES],
  retention: ['report', 'view', 'by', 'event', 'returnEvent', 'groupBy', ...RANGE_NAMES],
  values: ['report', 'view', 'property', 'event', ...RANGE_NAMES],
};

interface ExploreFormProps {
  readonly report: Report;
  readonly params: URLSearchParams;
}

/** The one form of all reports, which reads as a sentence and applies by itself: what is counted, of what, in which time. */
export function ExploreForm({ report, params }: ExploreFormProps) {
  return (
    <FilterForm
      params={params}
      fields={FIELDS[report]}
      stepsOf={(filters) => (report === 'funnel' ? stepsOf(filters).length : 0)}
      controls={{
        names: CONTROLLED[report],
        render: (filters, onChange) => (
          <div class="sentence">
            <Sentence report={report} filters={filters} onChange={onChange} />
          </div>
        ),
      }}
      missingOf={(filters) => missingOf(report, filters, params)}
      onApply={(applied, isAgain) => goTo(hrefOf(['explore'], applied), isAgain)}
    />
  );
}

interface ControlProps {
  readonly filters: Filters;
  readonly onChange: (filters: Filters) => void;
}

/** What a report shows, with a control in each place that can be another. */
function Sentence({ report, filters, onChange }: ControlProps & { readonly report: Report }) {
  const fieldOf = (name: string) => filters.fields[name] ?? '';
  const set = (name: string) => (value: string) => onChange(withFields(filters, { [name]: value }));
  const event = <FilterField field={EVENT} value={fieldOf('event')} onChange={set('event')} />;
  const group = <GroupBox label="Break down by" value={fieldOf('groupBy')} onChange={set('groupBy')} />;
  const range = <RangeFields filters={filters} onChange={onChange} />;
  const by = (label: string) => <FilterField field={{ ...BY, label }} value={fieldOf('by')} onChange={set('by')} />;
  switch (report) {
    case 'series':
      return (
        <>
          <MeasureFields value={fieldOf('measure')} onChange={set('measure')} /> of {event} by{' '}
          <Breakdown value={fieldOf('groupBy')} onChange={set('groupBy')} />, {range}, against{' '}
          <FilterField field={compareField(filters)} value={fieldOf('compare')} onChange={set('compare')} />
        </>
      );
    case 'funnel':
      return (
        <>
          {by('Who goes through it')} who did these steps by {group}, {range}
          <Steps filters={filters} onChange={onChange} />
        </>
      );
    case 'retention':
      return (
        <>
          {by('Who comes back')} who did {event} and came back with{' '}
          <FilterField field={RETURN_EVENT} value={fieldOf('returnEvent')} onChange={set('returnEvent')} /> by {group},{' '}
          {range}
        </>
      );
    case 'values':
      return (
        <>
          Values of <GroupBox label="Property" value={fieldOf('property')} onChange={set('property')} /> in {event},{' '}
          {range}
        </>
      );
  }
}

const EVENT: FieldDescription = { ...EVENT_FIELD, isLabelHidden: true, placeholder: 'any event' };

const RETURN_EVENT: FieldDescription = {
  name: 'returnEvent',
  label: 'Return event',
  isLabelHidden: true,
  placeholder: 'the same',
  suggest: suggestEvents,
};

/** Who a funnel and retention count. */
const BY: FieldDescription = {
  name: 'by',
  label: 'Who',
  isLabelHidden: true,
  options: [
    ['', 'Users'],
    ['organization', 'Organizations'],
  ],
};

/** What a chart is compared with. */
function compareField({ fields }: Filters): FieldDescription {
  const { range = '', startDate = '', endDate = '' } = fields;
  const length = RANGES[range || RANGE_DEFAULT]?.label.replace('Last ', '');
  const before = startDate !== '' || endDate !== '' || length === undefined ? 'time' : length;
  return {
    name: 'compare',
    label: 'Compare with',
    isLabelHidden: true,
    options: [
      ['', 'nothing'],
      ['previous', `the ${before} before`],
    ],
  };
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
      <FilterField
        field={{ name: 'measure', label: 'Measure', isLabelHidden: true, options }}
        value={kind}
        onChange={choose}
      />
      {property !== undefined && (
        <NameBox
          label="Number property"
          isLabelHidden
          placeholder="a number"
          value={property}
          suggest={suggestNumbers}
          onChange={(changed) => onChange(`${kind}:${changed}`)}
        />
      )}
    </>
  );
}

/** The choice of a range while days count; no address has it. */
const CUSTOM = 'custom';

const RANGE_OPTIONS = [
  ...Object.entries(RANGES).map(([name, { label }]) => [name, label] as const),
  [CUSTOM, 'Custom'],
] as const;

/** The time: one that ends now, or the days from one to another. */
function RangeFields({ filters, onChange }: ControlProps) {
  const { range = '', startDate = '', endDate = '' } = filters.fields;
  const isCustom = startDate !== '' || endDate !== '';
  const choose = (chosen: string) => {
    const now = new Date();
    const dayOf = (time: Date) => dayText(dateIn(timeZone.value, time.getTime()));
    const days = {
      startDate: dayOf(startOf(range || RANGE_DEFAULT, timeZone.value, now)),
      endDate: dayOf(now),
    };
    onChange(
      withFields(filters, chosen === CUSTOM ? { range: '', ...days } : { range: chosen, startDate: '', endDate: '' }),
    );
  };
  return (
    <>
      <FilterField
        field={{ name: 'range', label: 'Range', isLabelHidden: true, options: RANGE_OPTIONS }}
        value={isCustom ? CUSTOM : range || RANGE_DEFAULT}
        onChange={choose}
      />
      {isCustom &&
        DAY_FIELDS.map((field) => (
          <FilterField
            key={field.name}
            field={field}
            value={filters.fields[field.name] ?? ''}
            onChange={(value) => onChange(withFields(filters, { [field.name]: value }))}
          />
        ))}
    </>
  );
}

/** A field for a name that numbers are grouped by. */
function GroupBox({ label, value, onChange }: FieldProps & { readonly label: string }) {
  const placeholder = label === 'Property' ? 'a property' : 'nothing';
  return <NameBox isLabelHidden suggest={suggestGroups} {...{ label, placeholder, value, onChange }} />;
}

/** Fields for the one or two names that a chart is broken down by. */
function Breakdown({ value, onChange }: FieldProps) {
  const names = splitList(value);
  const [first = '', second = '', ...more] = names;
  const change = (...changed: readonly string[]) =>
    onChange(joinList([...changed, ...more].filter((name) => name !== '')));
  return (
    <>
      <GroupBox label="Break down by" value={first} onChange={(changed) => change(changed, second)} />
      {(first !== '' || second !== '') && (
        <>
          {' '}
          and by <GroupBox label="Then by" value={second} onChange={(changed) => change(first, changed)} />
        </>
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
