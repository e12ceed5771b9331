import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { labelOfName, nameOf } from '../base/base.ts';
import type { Suggest, Suggestion } from './suggestions.ts';

interface ComboboxProps {
  readonly label: string;
  /** Whether the label is only read aloud. Default: it is shown. */
  readonly isLabelHidden?: boolean;
  readonly value: string;
  readonly placeholder?: string;
  readonly suggest: Suggest;
  /** Returns what is suggested for when the list is opened and nothing is typed yet. Default: for nothing, which is all. */
  readonly openedWith?: (value: string) => string;
  /** What was done, if the field is what comes next: with each other one it takes the focus and opens. */
  readonly comesAfter?: object | undefined;
  readonly onChange: (value: string) => void;
  /** Called when something was chosen from the list, after `onChange`. */
  readonly onChosen?: () => void;
}

/** query-api is asked after a pause in typing of so many milliseconds. */
const PAUSE_MS = 150;

/**
 * A text field with a list of suggestions for what was typed, as the combobox pattern of WAI-ARIA describes: the arrows
 * choose, Enter takes what is chosen, Escape closes the list. Any other text may be typed.
 */
export function Combobox(props: ComboboxProps) {
  const { label, isLabelHidden = false, value, placeholder, suggest, openedWith = () => '', onChange } = props;
  const { comesAfter, onChosen } = props;
  const id = useId();
  const input = useRef<HTMLInputElement>(null);
  const [isOpen, setIsOpen] = useState(false);
  const [isTyped, setIsTyped] = useState(false);
  const [active, setActive] = useState(-1);
  const text = isTyped ? value : openedWith(value);
  const found = useSuggestions(isOpen ? text : undefined, suggest, isTyped ? PAUSE_MS : 0);
  const status = found.hasFailed ? 'There are no suggestions now.' : `${found.suggestions.length} suggestions`;
  // Whoever points at a field with a value may want none, too.
  const suggestions = isTyped || value === '' ? found.suggestions : [nothingIn(placeholder), ...found.suggestions];
  // A menu of what begins with what was typed: nobody means that beginning.
  const isChoosing =
    isOpen &&
    isTyped &&
    value !== '' &&
    (found.text !== value || (suggestions.length > 0 && suggestions.every((one) => one.text !== value)));
  const isShown = isOpen && suggestions.length > 0;
  const close = () => {
    setIsOpen(false);
    setIsTyped(false);
    setActive(-1);
  };
  const take = ({ text }: Suggestion) => {
    onChange(text);
    close();
    if (text !== '') onChosen?.();
  };
  // At once: what somebody types next is for this field.
  useLayoutEffect(() => {
    if (!comesAfter) return;
    input.current?.focus();
    setIsOpen(true);
  }, [comesAfter]);
  const keys: Readonly<Record<string, () => void>> = {
    ArrowDown: () => (isOpen ? setActive((active + 1) % Math.max(1, suggestions.length)) : setIsOpen(true)),
    ArrowUp: () => setActive(active <= 0 ? suggestions.length - 1 : active - 1),
    ...(isOpen && { Escape: close }),
    ...(suggestions[active] && isShown && { Enter: () => take(suggestions[active] as Suggestion) }),
  };
  return (
    <div class="combobox">
      <label for={id} class={isLabelHidden ? 'hidden' : undefined}>
        {label}
      </label>
      <input
        id={id}
        ref={input}
        role="combobox"
        autocomplete="off"
        spellcheck={false}
        aria-autocomplete="list"
        aria-expanded={isShown}
        aria-controls={isShown ? `${id}-list` : undefined}
        aria-activedescendant={isShown && active >= 0 ? `${id}-${active}` : undefined}
        data-choosing={isChoosing || undefined}
        value={value}
        placeholder={placeholder}
        onInput={({ currentTarget }) => {
          onChange(currentTarget.value);
          setIsOpen(true);
          setIsTyped(true);
          setActive(-1);
        }}
        onClick={() => setIsOpen(true)}
        onBlur={close}
        onKeyDown={(event) => {
          const act = keys[event.key];
          if (!act || event.isComposing) return;
          event.preventDefault();
          act();
        }}
      />
      {isShown && <Suggestions id={id} label={label} suggestions={suggestions} active={active} onTake={take} />}
      <span class="hidden" role="status">
        {found.text !== undefined && status}
      </span>
    </div>
  );
}

/** The choice that empties a field. */
function nothingIn(placeholder = ''): Suggestion {
  return { text: '', note: placeholder || 'nothing' };
}

/** What there is to choose from for a text, or that there was no answer. */
interface Suggested<Item> {
  /** The text that they are for, which may have changed since; `undefined` for none. */
  readonly text: string | undefined;
  readonly suggestions: readonly Item[];
  readonly hasFailed: boolean;
}

/**
 * Asks for suggestions while there is a text; one that has been overtaken by another is aborted.
 *
 * @param pauseMs how long it waits for more of the text, in milliseconds
 */
export function useSuggestions<Item extends Suggestion>(
  text: string | undefined,
  suggest: (typed: string, signal: AbortSignal) => Promise<readonly Item[]>,
  pauseMs = PAUSE_MS,
): Suggested<Item> {
  const [found, setFound] = useState<Suggested<Item>>(NOTHING);
  useEffect(() => {
    if (text === undefined) return setFound(NOTHING);
    const controller = new AbortController();
    const run = async () => {
      try {
        const suggestions = await suggest(text, controller.signal);
        if (!controller.signal.aborted) setFound({ text, suggestions, hasFailed: false });
      } catch {
        if (!controller.signal.aborted) setFound({ text, suggestions: [], hasFailed: true });
      }
    };
    const timer = setTimeout(() => void run(), pauseMs);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [text, suggest]);
  return found;
}

const NOTHING = { text: undefined, suggestions: [], hasFailed: false };

interface SuggestionsProps<Item> {
  readonly id: string;
  readonly label: string;
  readonly suggestions: readonly Item[];
  readonly active: number;
  readonly onTake: (suggestion: Item) => void;
}

/** The list of a combobox, in which `active` is chosen; its identifiers begin with `id`. */
export function Suggestions<Item extends Suggestion>({
  id,
  label,
  suggestions,
  active,
  onTake,
}: SuggestionsProps<Item>) {
  return (
    <div id={`${id}-list`} class="suggestions" role="listbox" aria-label={`Suggestions for ${label}`}>
      {[...Map.groupBy(suggestions.entries(), ([, { heading }]) => heading)].map(([heading, entries]) => {
        const options = entries.map(([index, suggestion]) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field has the focus and the keys
          <div
            key={index}
            id={`${id}-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === active}
            ref={(element) => void (index === active && element?.scrollIntoView({ block: 'nearest' }))}
            // The focus stays in the field.
            onMouseDown={(event) => event.preventDefault()}
            onClick={() => onTake(suggestion)}
          >
            <bdi>{suggestion.text}</bdi> <span class="muted">{suggestion.note}</span>
          </div>
        ));
        if (heading === undefined) return options;
        return (
          // biome-ignore lint/a11y/useSemanticElements: a list of suggestions has no fieldset
          <div key={heading} role="group" aria-label={heading}>
            <div class="heading" aria-hidden="true">
              {heading}
            </div>
            {options}
          </div>
        );
      })}
    </div>
  );
}

/** A {@link Combobox} whose value is a name of the API, shown as a person reads it. */
export function NameBox({ value, onChange, ...rest }: ComboboxProps) {
  const [typed, setTyped] = useState(labelOfName(value));
  // What somebody types stays: `userId` would turn into its label under the cursor.
  const text = nameOf(typed) === value ? typed : labelOfName(value);
  return (
    <Combobox
      {...rest}
      value={text}
      onChange={(changed) => {
        setTyped(changed);
        onChange(nameOf(changed));
      }}
    />
  );
}
