import { useLayoutEffect, useRef, useState } from 'preact/hooks';

/** Returns a reference to the button that has the focus whenever something opens in place of another one, or is closed again. */
export function useFocusBack(isOpen: boolean) {
  const button = useRef<HTMLButtonElement>(null);
  const wasOpen = useRef(false);
  // What had the focus is gone. At once: after the next frame, the next key would get lost.
  useLayoutEffect(() => {
    if (isOpen || wasOpen.current) button.current?.focus();
    wasOpen.current = isOpen;
  }, [isOpen]);
  return button;
}

interface ConfirmButtonProps {
  readonly label: string;
  /** What the label is about, for those who do not see the row that the button is in. Default: nothing more. */
  readonly subject?: string;
  readonly question: string;
  /** What is done, on the button that does it. */
  readonly confirm: string;
  readonly onConfirm: () => void;
}

/** A button that asks before it acts, in its own place. */
export function ConfirmButton({ label, subject, question, confirm, onConfirm }: ConfirmButtonProps) {
  const [isAsked, setIsAsked] = useState(false);
  const first = useFocusBack(isAsked);
  if (!isAsked) {
    return (
      <button type="button" ref={first} onClick={() => setIsAsked(true)}>
        {label}
        {subject !== undefined && <span class="hidden"> {subject}</span>}
      </button>
    );
  }
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset would be for fields of a form
    <span
      class="confirm"
      role="group"
      aria-label={question}
      onKeyDown={({ key }) => {
        if (key === 'Escape') setIsAsked(false);
      }}
    >
      <span>{question}</span>
      <button
        type="button"
        class="primary"
        ref={first}
        onClick={() => {
          setIsAsked(false);
          onConfirm();
        }}
      >
        {confirm}
      </button>
      <button type="button" onClick={() => setIsAsked(false)}>
        Cancel
      </button>
    </span>
  );
}

interface CopyButtonProps {
  readonly label: string;
  /** What is copied, for those who do not see it beside the button. */
  readonly subject?: string;
  /** Returns the text when it is wanted: it may be long. */
  readonly textOf: () => string;
}

/** Copies a text, and says whether that worked. */
export function CopyButton({ label, subject = '', textOf }: CopyButtonProps) {
  const [result, setResult] = useState('');
  const copy = () => {
    navigator.clipboard.writeText(textOf()).then(
      () => setResult('Copied'),
      () => setResult('Not copied: the browser refused'),
    );
  };
  return (
    <button type="button" onClick={copy}>
      {result || label}
      {subject !== '' && <span class="hidden"> {subject}</span>}
    </button>
  );
}

/** A text to be copied, with a heading. */
export function Snippet({ title, text }: { readonly title: string; readonly text: string }) {
  return (
    <section>
      <h2>{title}</h2>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard */}
      <section class="snippet" aria-label={title} tabIndex={0}>
        <pre>{text}</pre>
      </section>
      <CopyButton label="Copy" subject={title} textOf={() => text} />
    </section>
  );
}

interface CommandProps {
  readonly text: string;
  /** What the command does, for those who do not see what it is below. Default: its text. */
  readonly label?: string;
}

/** A command in a line, to be copied. */
export function Command({ text, label = text }: CommandProps) {
  return (
    <div class="command">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard */}
      <section aria-label={label} tabIndex={0}>
        <pre>{text}</pre>
      </section>
      <CopyButton label="Copy" subject={label} textOf={() => text} />
    </div>
  );
}
