import { readFileSync } from 'node:fs';

/** A statement of the writer. Its name ends up in its query id, by which it can be found in ClickHouse's query log. */
export interface Statement {
  readonly name: string;
  readonly sql: string;
}

/** The SQL files. A step of `protocol/steps.ts` that runs one of them has the same name. */
const FILES = [
  // The consumer group of the database.
  'record-group',
  'read-groups',
  // Taking partitions over.
  'newest-epoch',
  'record-epoch',
  'end-older-statements',
  // Storing a batch.
  'end-own-statements',
  'stage-events',
  'stage-changes',
  'load-events',
  'load-changes',
  'inspect-events',
  'inspect-changes',
  'find-deletions',
  'count-deleted-rows',
  'store-seen-in-deleted-events',
  'drop-deleted-events',
  'drop-deleted-changes',
  'store-deletions',
  'store-pending-deletions',
  'store-properties',
  'store-sightings',
  'store-seen-in-changes',
  'find-repeats',
  'find-stamped-repeats',
  'drop-hidden-originals',
  'drop-repeats',
  'store-seen-in-events',
  'store-events',
  'store-dead-letters',
  // Positions and halts of partitions.
  'read-partitions',
  'store-positions',
  'choose-position',
  'record-topic-partitions',
  'read-topic-partitions',
  'record-halt',
  'resume-partition',
  // Erasing deleted users.
  'find-due-erasures',
  'find-deleted-rows',
  'find-removals',
  'end-failed-removals',
  'erase-events',
  'erase-properties',
  'erase-sightings',
  'erase-entities',
  'erase-dead-letters',
  'forget-erased',
] as const;

export const STATEMENTS = Object.fromEntries(
  FILES.map((name) => [name, { name, sql: readFileSync(new URL(`./sql/${name}.sql`, import.meta.url), 'utf8') }]),
) as Readonly<Record<(typeof FILES)[number], Statement>>;

/** Statements that find out which rows of a batch ClickHouse cannot store. */
export interface NumberedRowStatements {
  /** Creates a table like the staging table, with a number for each row and without constraints. */
  readonly create: Statement;
  readonly load: Statement;
  /** Loads as well, but skips the rows that ClickHouse cannot parse. */
  readonly loadSkipping: Statement;
  /** Returns the numbers of the loaded rows, each with the constraint that it violates, or an empty text. */
  readonly readLoaded: Statement;
}

/** Returns the columns of a staging table as SQL: what a row of this kind holds, without the table's constraints. */
export function stagingColumns(kind: 'events' | 'changes'): string {
  const { sql } = STATEMENTS[`stage-${kind}`];
  return sql.replace(/^[\s\S]*?CREATE TEMPORARY TABLE \w+ \(/, '').replace(/,\s*CONSTRAINT[\s\S]*$/, '');
}

/** Derives the statements from the staging table's own statement, so that both define a row in the same way. */
function numberedRowStatements(kind: 'events' | 'changes'): NumberedRowStatements {
  const staging = STATEMENTS[`stage-${kind}`].sql;
  const table = `numbered_${kind}`;
  const columns = stagingColumns(kind);
  const checks = [...staging.matchAll(/CONSTRAINT (\w+) CHECK (.+?),?$/gm)];
  const violated = checks.map(([, name, check]) => `NOT (${check}), '${name}'`).join(', ');
  const load = `INSERT INTO ${table}`;
  const skipping = 'input_format_allow_errors_num = 4294967295, input_format_allow_errors_ratio = 1';
  return {
    create: {
      name: `number-${kind}`,
      sql: `CREATE OR REPLACE TEMPORARY TABLE ${table} (line UInt32, ${columns}) ENGINE = Memory`,
    },
    load: { name: `load-numbered-${kind}`, sql: `${load} FORMAT JSONEachRow` },
    loadSkipping: { name: `load-numbered-${kind}`, sql: `${load} SETTINGS ${skipping} FORMAT JSONEachRow` },
    readLoaded: {
      name: `read-numbered-${kind}`,
      sql: `SELECT line, multiIf(${violated}, '') AS violated FROM ${table}`,
    },
  };
}

export const NUMBERED_ROWS = {
  events: numberedRowStatements('events'),
  changes: numberedRowStatements('changes'),
} as const;
