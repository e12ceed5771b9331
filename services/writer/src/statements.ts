import { readFileSync } from 'node:fs';

function statement(name: string): { readonly name: string; readonly sql: string } {
  return { name, sql: readFileSync(new URL(`./sql/${name}.sql`, import.meta.url), 'utf8') };
}

export type Statement = ReturnType<typeof statement>;

/** The SQL of the writer, each in a file of its own under sql/. */
export const STATEMENTS = {
  stageEvents: statement('stage-events'),
  stageChanges: statement('stage-changes'),
  stageRepeats: statement('stage-repeats'),
  loadEvents: statement('load-events'),
  loadChanges: statement('load-changes'),
  emptyEvents: statement('empty-events'),
  emptyChanges: statement('empty-changes'),
  findDeletions: statement('find-deletions'),
  examine: statement('examine'),
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
  dueErasures: statement('due-erasures'),
  eraseEvents: statement('erase-events'),
  eraseProperties: statement('erase-properties'),
  eraseSightings: statement('erase-sightings'),
  eraseEntities: statement('erase-entities'),
  eraseDeadLetters: statement('erase-dead-letters'),
  markErased: statement('mark-erased'),
} as const;
