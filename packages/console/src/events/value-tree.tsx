import { useState } from 'preact/hooks';
import { formatCount, formatNumber, isNested } from '../base/base.ts';
import type { Place } from './value-links.ts';

/** An object or an array shows so many members at once. */
const MEMBERS_MAX = 100;

/** A value shows so many characters at once. */
const CHARACTERS_MAX = 300;

/** A button shows so many more characters of a long value each time. */
const CHARACTERS_STEP = 100_000;

/** Objects of up to so many members are open from the beginning, at the first level. */
const OPEN_MEMBERS_MAX = 20;

interface TreeProps {
  readonly value: Readonly<Record<string, unknown>> | readonly unknown[];
  /** Where the value is; without one, no filter can find what it holds. */
  readonly place: Place | undefined;
  /** Returns what can be done with a value that has a place and no members. */
  readonly actionsOf: (place: Place, value: unknown) => preact.ComponentChild;
}

/** The members of an object or an array, one a row. What is closed is not in the page, so that any depth is quick. */
export function ValueTree({ value, place, actionsOf }: TreeProps) {
  const [shownMax, setShownMax] = useState(MEMBERS_MAX);
  const members = Object.entries(value);
  const left = members.length - shownMax;
  return (
    <ul class="tree">
      {members.slice(0, shownMax).map(([name, member]) => (
        <Member
          key={name}
          name={name}
          value={member}
          place={placeOf(value, place, name, member)}
          actionsOf={actionsOf}
        />
      ))}
      {left > 0 && (
        <li>
          <button type="button" onClick={() => setShownMax(shownMax + MEMBERS_MAX)}>
            Show {formatNumber(Math.min(left, MEMBERS_MAX))} more of {formatNumber(left)}
          </button>
        </li>
      )}
    </ul>
  );
}

/** Filters find the items of an array by the name of the array, but not what is inside these. */
function placeOf(value: TreeProps['value'], place: Place | undefined, name: string, member: unknown) {
  if (Array.isArray(value)) return isNested(member) ? undefined : place;
  return place && { ...place, names: [...place.names, name] };
}

interface MemberProps extends Omit<TreeProps, 'value'> {
  readonly name: string;
  readonly value: unknown;
}

function Member({ name, value, place, actionsOf }: MemberProps) {
  if (isNested(value) && Object.keys(value).length > 0) {
    return (
      <li>
        <Branch name={name} value={value} place={place} actionsOf={actionsOf} />
      </li>
    );
  }
  return (
    <li class="leaf">
      <span class="name">
        <bdi>{name}</bdi>
      </span>{' '}
      <Leaf value={value} />
      {place && <span class="value-actions">{actionsOf(place, value)}</span>}
    </li>
  );
}

function Branch({ name, value, place, actionsOf }: TreeProps & { readonly name: string }) {
  const count = Object.keys(value).length;
  const [isOpen, setIsOpen] = useState(place?.names.length === 1 && count <= OPEN_MEMBERS_MAX && !Array.isArray(value));
  return (
    <details open={isOpen} onToggle={({ currentTarget }) => setIsOpen(currentTarget.open)}>
      <summary>
        <span class="name">
          <bdi>{name}</bdi>
        </span>{' '}
        <span class="muted">{formatCount(count, Array.isArray(value) ? 'item' : 'member')}</span>
      </summary>
      {isOpen && <ValueTree value={value} place={place} actionsOf={actionsOf} />}
    </details>
  );
}

/** A value as JSON, of a long one the beginning. */
export function Leaf({ value }: { readonly value: unknown }) {
  const [shownMax, setShownMax] = useState(CHARACTERS_MAX);
  const text = JSON.stringify(value);
  const left = text.length - shownMax;
  return (
    <span class="value">
      <bdi>{text.slice(0, shownMax)}</bdi>
      {left > 0 && (
        <>
          {' … '}
          <button type="button" onClick={() => setShownMax(shownMax + CHARACTERS_STEP)}>
            Show more of {formatNumber(text.length)} characters
          </button>
        </>
      )}
    </span>
  );
}
