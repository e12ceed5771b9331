/** Not yet in TypeScript's library, nor in every browser. */
const { rawJSON } = JSON as unknown as { rawJSON?(text: string): unknown };

/**
 * Parses JSON that came from outside. A number that a double does not hold exactly keeps its digits, as it is shown again
 * with `JSON.stringify`; a browser without `JSON.rawJSON` shows the nearest double.
 */
export function parseRecords(text: string): unknown {
  if (!rawJSON) return JSON.parse(text);
  return JSON.parse(text, (_name, value, { source = '' }: { source?: string } = {}) =>
    typeof value === 'number' && String(value) !== source ? rawJSON(source) : value,
  );
}

/** Returns a number of {@link parseRecords} as the nearest double, to be drawn and compared. */
export function toDouble(value: number | null): number | null {
  return value === null || typeof value === 'number' ? value : Number(JSON.stringify(value));
}
