/** These are not yet in TypeScript's library, nor in every browser. */
const { rawJSON, isRawJSON } = JSON as unknown as {
  rawJSON?(text: string): unknown;
  isRawJSON?(value: unknown): boolean;
};

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

/** Whether a value of {@link parseRecords} is a number, also one that no double holds. */
export function isNumber(value: unknown): boolean {
  return typeof value === 'number' || isRawJSON?.(value) === true;
}

/** Whether a value of {@link parseRecords} is an object or an array. */
export function isNested(value: unknown): value is Readonly<Record<string, unknown>> | readonly unknown[] {
  return typeof value === 'object' && value !== null && !isNumber(value);
}
