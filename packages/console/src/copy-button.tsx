import { useState } from 'preact/hooks';

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
