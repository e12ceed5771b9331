interface Statement {
  readonly sql: string;
}

/** Returns the name of the table that a migration creates. */
export function createdTable({ sql }: Statement): string | undefined {
  return /^CREATE TABLE IF NOT EXISTS (\w+)/m.exec(sql)?.[1];
}

/**
 * Groups migrations so that those of one group can run at once, and each group after the one before it. Migrations that
 * name a common table stay in their order.
 *
 * @param tables every table that migrations create
 */
export function inWaves<Migration extends Statement>(
  migrations: readonly Migration[],
  tables: readonly string[],
): readonly Migration[][] {
  const waves: Migration[][] = [];
  /** For each table the first wave that may name it. */
  const free = new Map<string, number>();
  for (const migration of migrations) {
    const words = wordsOf(migration.sql);
    const named = tables.filter((table) => words.has(table));
    const wave = Math.max(0, ...named.map((table) => free.get(table) ?? 0));
    for (const table of named) free.set(table, wave + 1);
    waves[wave] ??= [];
    waves[wave].push(migration);
  }
  return waves;
}

/** The words of a statement, without those of comments and of strings. */
function wordsOf(sql: string): ReadonlySet<string> {
  return new Set(sql.replaceAll(/--.*$|'(?:[^'\\]|\\.)*'/gm, '').match(/\w+/g));
}
