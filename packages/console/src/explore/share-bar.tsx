/** A bar as long as a share of the whole, from 0 to 1. The number beside it says the same. */
export function ShareBar({ share }: { readonly share: number }) {
  return (
    <svg class="share" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
      <rect class="share-whole" width="100" height="10" />
      <rect width={Math.min(100, Math.max(0, 100 * share))} height="10" />
    </svg>
  );
}
