import { readFileSync } from 'node:fs';

function statement(name: string): { readonly name: string; readonly sql: string } {
  return { name, sql: readFileSync(new URL(`./sql/${name}.sql`, import.meta.url), 'utf8') };
}

export type Statement = ReturnType<typeof statement>;

/** How the rows that cannot be stored are told from the others. */
export interface NumberedRows {
  /** A table as the staging table, with the number of each row and without constraints. */
  readonly create: Statement;
  readonly load: Statement;
  /** Leaves out the rows that cannot be read. */
  readonly loadSkipping: Statement;
  /** The numbers of the rows that have arrived, each with the constraint that it breaks, or an empty text. */
  readonly readArrived: Statement;
}

/** Made from the staging table's own statement, so that both agree about what a row is. */
function numberedRows(kind: 'events' | 'changes'): NumberedRows {
  const staging = statement(`stage-${kind}`).sql;
  const table = `numbered_${kind}`;
  const columns = staging.replace(/^[\s\S]*?CREATE TEMPORARY TABLE \w+ \(/, '').replace(/,\s*CONSTRAINT[\s\S]*$/, '');
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
    readArrived: {
      name: `read-numbered-${kind}`,
      sql: `SELECT line, multiIf(${violated}, '') AS violated FROM ${table}`,
    },
  };
}

/** The SQL of the writer, each in a file of its own under sql/. */
export const STATEMENTS = {
  stageEvents: statement('stage-events'),
  stageChanges: statement('stage-changes'),
  stageRepeats: statement('stage-repeats'),
  loadEvents: statement('load-events'),
  loadChanges: statement('load-changes'),
  numbered: { events: numberedRows('events'), changes: numberedRows('changes') },
  findDeletions: statement('find-deletions'),
  examine: statement('examine'),
  storeSeenInDeletedEvents: statement('store-seen-in-deleted-events'),
  dropDeletedEvents: statement('drop-deleted-events'),
  dropDeletedChanges: statement('drop-deleted-changes'),
  findRepeats: statement('find-repeats'),
  storeDeletions: statement('store-deletions'),
  storeProperties: statement('store-properties'),
  storeSightings: statement('store-sightings'),
  storeSeenInChanges: statement('store-seen-in-changes'),
  storeSeenInEvents: statement('store-seen-in-events'),
  storeEvents: statement('store-events'),
  storeDeadLetters: statement('store-dead-letters'),
  newestFence: statement('newest-fence'),
  recordFence: statement('record-fence'),
  killOlder: statement('kill-older'),
  killOwn: statement('kill-own'),
  storePositions: statement('store-positions'),
  readPositions: statement('read-positions'),
  choosePosition: statement('choose-position'),
  readHalts: statement('read-halts'),
  recordHalt: statement('record-halt'),
  liftHalt: statement('lift-halt'),
  dueErasures: statement('due-erasures'),
  eraseEvents: statement('erase-events'),
  eraseProperties: statement('erase-properties'),
  eraseSightings: statement('erase-sightings'),
  eraseEntities: statement('erase-entities'),
  eraseDeadLetters: statement('erase-dead-letters'),
  markErased: statement('mark-erased'),
} as const;
