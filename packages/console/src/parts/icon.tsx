import type { IconNode } from 'lucide';
import { h } from 'preact';

/** An icon of Lucide, as high as the text. What it means stands beside it, or in the name of its link or button. */
export function Icon({ of }: { readonly of: IconNode }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
      {of.map(([tag, attributes]) => h(tag, attributes))}
    </svg>
  );
}
