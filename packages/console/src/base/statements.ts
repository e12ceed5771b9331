import { signal } from '@preact/signals';

const ITEM = 'sluice-statements';

/** So many are kept. */
const STATEMENTS_MAX = 30;

/** Longer ones are not kept, in characters. */
const CHARACTERS_MAX = 10_000;

/** The statements of SQL that ran in this browser, the newest first. They belong to who is signed in. */
export const statements = signal<readonly string[]>([]);

/** Keeps a statement as the newest one, once. */
export function rememberStatement(sql: string): void {
  if (sql.length > CHARACTERS_MAX) return;
  const others = readStatements().filter((other) => other !== sql);
  statements.value = [sql, ...others].slice(0, STATEMENTS_MAX);
  localStorage.setItem(ITEM, JSON.stringify(statements.value));
}

/** Forgets all of them. */
export function forgetStatements(): void {
  statements.value = [];
  localStorage.removeItem(ITEM);
}

/** Reads those that this browser has kept: another tab may have added some, and another version may have stored anything. */
export function readStatements(): readonly string[] {
  let stored: unknown;
  try {
    stored = JSON.parse(localStorage.getItem(ITEM) ?? '[]');
  } catch {
    stored = [];
  }
  statements.value = Array.isArray(stored)
    ? stored.filter((one) => typeof one === 'string').slice(0, STATEMENTS_MAX)
    : [];
  return statements.value;
}
