import { CopyButton } from './copy-button.tsx';

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
