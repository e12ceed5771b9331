import { useState } from 'preact/hooks';
import type { Segment } from '../base/base.ts';
import { Combobox, type Condition, Conditions, suggestEvents } from '../filters/filters.ts';
import { type Behaviour, conditionsFor, conditionsOf, type Definition, filtersOf } from './definition.ts';

/** What is typed of one behaviour. Days are empty for any time. */
type TypedBehaviour = Readonly<Record<'did' | 'times' | 'days', string>>;

const NEW_BEHAVIOUR: TypedBehaviour = { did: '', times: '1', days: '30' };

interface SegmentFormProps {
  readonly label: string;
  /** What the form begins with. */
  readonly initial: Definition;
  /** The name that the segment has. Default: the form asks for one. */
  readonly name?: string;
  /** Stores the segment; `definition` throws when the form has what no segment can be. */
  readonly onSave: (name: string, definition: () => Definition) => void;
}

/** A form for what a segment is. */
export function SegmentForm({ label, initial, name, onSave }: SegmentFormProps) {
  const [of, setOf] = useState(initial.of);
  const [conditions, setConditions] = useState<readonly Condition[]>(() => conditionsOf(initial));
  const [behaviour, setBehaviour] = useState<readonly TypedBehaviour[]>(() => initial.behaviour.map(typed));
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const given = name ?? String(new FormData(event.currentTarget as HTMLFormElement).get('name'));
    onSave(given, () => ({ of, filters: filtersOf(of, conditions), behaviour: behaviour.map(read) }));
  };
  return (
    <form class="filters" aria-label={label} onSubmit={submit}>
      <div class="fields">
        {name === undefined && (
          <label>
            Name
            <input
              name="name"
              required
              maxLength={64}
              pattern="[A-Za-z0-9_\-]+"
              title="Letters from a to z, digits, - and _"
              autocomplete="off"
            />
          </label>
        )}
        <label>
          Of
          <select
            value={of}
            onChange={({ currentTarget }) => {
              const chosen = currentTarget.value as Segment['of'];
              setOf(chosen);
              setConditions(conditionsFor(chosen, conditions));
            }}
          >
            <option value="users">Users</option>
            <option value="organizations">Organizations</option>
          </select>
        </label>
      </div>
      {behaviour.map((one, index) => (
        <BehaviourFields
          key={index}
          behaviour={one}
          onChange={(changed) => setBehaviour(behaviour.toSpliced(index, 1, ...(changed ? [changed] : [])))}
        />
      ))}
      <Conditions
        conditions={conditions}
        of={of === 'users' ? 'userSegment' : 'organizationSegment'}
        onChange={setConditions}
      >
        <button type="button" onClick={() => setBehaviour([...behaviour, NEW_BEHAVIOUR])}>
          Add what they did
        </button>
        <button type="submit" class="primary">
          Save the segment
        </button>
      </Conditions>
    </form>
  );
}

function typed({ did, times, days }: Behaviour): TypedBehaviour {
  return { did, times: String(times), days: days === undefined ? '' : String(days) };
}

function read({ did, times, days }: TypedBehaviour): Behaviour {
  return { did, times: Number(times), ...(days !== '' && { days: Number(days) }) };
}

interface BehaviourFieldsProps {
  readonly behaviour: TypedBehaviour;
  /** Called without a behaviour to remove it. */
  readonly onChange: (behaviour?: TypedBehaviour) => void;
}

/** That events of a name are there so often, or never, within some days. */
function BehaviourFields({ behaviour, onChange }: BehaviourFieldsProps) {
  const { did, times, days } = behaviour;
  const isNever = times === '0';
  return (
    <fieldset class="condition">
      <legend class="hidden">What they did: {did === '' ? 'an event' : did}</legend>
      <select
        aria-label="Whether they did it"
        value={isNever ? 'never' : 'did'}
        onChange={({ currentTarget }) => onChange({ ...behaviour, times: currentTarget.value === 'never' ? '0' : '1' })}
      >
        <option value="did">Did</option>
        <option value="never">Did not do</option>
      </select>
      <Combobox
        label="Event that they did"
        isLabelHidden
        placeholder="Event"
        value={did}
        suggest={suggestEvents}
        comesAfter={behaviour === NEW_BEHAVIOUR ? behaviour : undefined}
        onChange={(changed) => onChange({ ...behaviour, did: changed })}
      />
      {!isNever && (
        <label>
          at least{' '}
          <input
            {...{ type: 'number', min: 1, max: 1_000_000, required: true, value: times }}
            onInput={({ currentTarget }) => onChange({ ...behaviour, times: currentTarget.value })}
          />{' '}
          times
        </label>
      )}
      <label>
        within{' '}
        <input
          {...{ type: 'number', min: 1, max: 36_500, placeholder: 'any', value: days }}
          onInput={({ currentTarget }) => onChange({ ...behaviour, days: currentTarget.value })}
        />{' '}
        days
      </label>
      <button type="button" onClick={() => onChange()}>
        Remove<span class="hidden"> what they did: {did}</span>
      </button>
    </fieldset>
  );
}
