import type { ComponentChildren } from 'preact';
import { useId, useLayoutEffect, useRef } from 'preact/hooks';

interface NameFormProps {
  readonly label: string;
  /** What the name is for, on the button. */
  readonly action: string;
  /** The name that the field begins with. Default: none. */
  readonly value?: string;
  /** Whether it is what its page is for. Default: no; a page has one such button. */
  readonly isMain?: boolean;
  readonly onName: (name: string) => Promise<void>;
  /** What else is asked for. Default: nothing. */
  readonly children?: ComponentChildren;
  /** Closes the form, as Escape does. Default: the form stays. */
  readonly onCancel?: () => void;
}

/** Asks for a name. One that opens in place of a button gets the focus. */
export function NameForm({ label, action, value = '', isMain = false, onName, children, onCancel }: NameFormProps) {
  const id = useId();
  const input = useRef<HTMLInputElement>(null);
  // At once: what somebody types next belongs to it.
  useLayoutEffect(() => {
    if (onCancel) input.current?.focus();
  }, []);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const name = input.current?.value.trim() ?? '';
    if (name === '') return;
    await onName(name);
    if (!onCancel && input.current) input.current.value = '';
  };
  return (
    <form
      class="name-form"
      onSubmit={submit}
      onKeyDown={({ key }) => {
        if (key === 'Escape') onCancel?.();
      }}
    >
      <label for={id}>{label}</label>
      <input id={id} ref={input} defaultValue={value} maxLength={200} autocomplete="off" dir="auto" required />
      {children}
      <button type="submit" class={isMain ? 'primary' : undefined}>
        {action}
      </button>
      {onCancel && (
        <button type="button" onClick={onCancel}>
          Cancel
        </button>
      )}
    </form>
  );
}
