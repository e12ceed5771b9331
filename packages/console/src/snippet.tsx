import { useState } from 'preact/hooks';

/** A text to be copied, with a heading. */
export function Snippet({ title, text }: { readonly title: string; readonly text: string }) {
  const [isCopied, setIsCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setIsCopied(true);
  };
  return (
    <section>
      <h2>{title}</h2>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard */}
      <section class="snippet" aria-label={title} tabIndex={0}>
        <pre>{text}</pre>
      </section>
      <button type="button" onClick={() => void copy().catch(() => undefined)}>
        {isCopied ? 'Copied' : 'Copy'}
        <span class="hidden"> {title}</span>
      </button>
    </section>
  );
}
