/** A chart has ten groups unless the address says otherwise, and a line for all others. */
const COLORS = 11;

/** Lines that share a color differ in their dashes. The style sheet has the same for legends. */
export const DASHES = [[], [8, 4], [2, 3]] as const;

/** Returns the numbers of a line's color and dashes. The style sheet has the colors. */
export function strokeOf(index: number): { readonly color: number; readonly dash: number } {
  return { color: index % COLORS, dash: Math.floor(index / COLORS) % DASHES.length };
}
