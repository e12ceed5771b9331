import type { RefObject } from 'preact';
import { useState } from 'preact/hooks';
import { type Completing, type Completion, completingAt } from './sql-words.ts';

interface SqlEditorProps {
  readonly value: string;
  readonly onInput: (value: string) => void;
  /** The names of the workspace's properties. */
  readonly properties: readonly string[];
  readonly box: RefObject<HTMLTextAreaElement | null>;
}

const NOTHING: Completing = { start: 0, completions: [] };

/**
 * The box of a statement. Names are completed as they are typed: arrows choose one, and Enter or Tab takes it; without a choice, these
 * keys do what they always do.
 */
export function SqlEditor({ value, onInput, properties, box }: SqlEditorProps) {
  const [{ start, completions }, setCompleting] = useState(NOTHING);
  const [chosen, setChosen] = useState(-1);
  const show = (completing: Completing) => {
    setCompleting(completing);
    setChosen(-1);
  };
  const take = ({ text }: Completion) => {
    if (!box.current) return;
    box.current.setRangeText(text, start, box.current.selectionEnd, 'end');
    box.current.focus();
    onInput(box.current.value);
    show(NOTHING);
  };
  const onKeyDown = (event: KeyboardEvent & { readonly currentTarget: HTMLTextAreaElement }) => {
    const { key, ctrlKey, metaKey, currentTarget } = event;
    if (key === 'Enter' && (ctrlKey || metaKey)) {
      show(NOTHING);
      currentTarget.form?.requestSubmit();
      return;
    }
    const completion = completions[chosen];
    const step = { ArrowDown: 1, ArrowUp: -1 }[key];
    if (completions.length === 0) return;
    if (step !== undefined) {
      event.preventDefault();
      setChosen((chosen + step + completions.length + (chosen < 0 && step < 0 ? 1 : 0)) % completions.length);
    } else if (completion && (key === 'Enter' || key === 'Tab')) {
      event.preventDefault();
      take(completion);
    } else if (key === 'Escape') {
      event.preventDefault();
      show(NOTHING);
    } else if (key.startsWith('Arrow') || key === 'Home' || key === 'End') show(NOTHING);
  };
  const isOpen = completions.length > 0;
  return (
    <div class="sql-editor">
      <label class="statement" for="statement">
        One SELECT over events, users, organizations and identities
      </label>
      <textarea
        id="statement"
        ref={box}
        required
        rows={Math.min(20, Math.max(8, value.split('\n').length + 1))}
        spellcheck={false}
        autocomplete="off"
        value={value}
        aria-autocomplete="list"
        aria-controls={isOpen ? 'completions' : undefined}
        aria-activedescendant={chosen < 0 ? undefined : `completion-${chosen}`}
        onInput={({ currentTarget }) => {
          onInput(currentTarget.value);
          show(completingAt(currentTarget.value, currentTarget.selectionEnd, properties));
        }}
        onKeyDown={onKeyDown}
        onBlur={() => show(NOTHING)}
      />
      {isOpen && (
        <div id="completions" class="completions" role="listbox" aria-label="Names">
          {completions.map((completion, index) => (
            // biome-ignore lint/a11y/useFocusableInteractive: as above
            <div
              key={completion.label}
              id={`completion-${index}`}
              role="option"
              aria-selected={index === chosen}
              // Before the box loses the focus.
              onMouseDown={(event) => {
                event.preventDefault();
                take(completion);
              }}
            >
              {completion.label}
              {completion.text !== completion.label && <span class="muted"> {completion.text}</span>}
            </div>
          ))}
        </div>
      )}
    </div>
  );
}
