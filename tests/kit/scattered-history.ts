export const MONTHS = 300;

/** One event a month, from 2001 to 2025, at a time that differs with `day`. */
export function timestamps(day: number): number[] {
  return Array.from({ length: MONTHS }, (_, month) => Date.UTC(2001, month, 1 + (day % 28), 12));
}
