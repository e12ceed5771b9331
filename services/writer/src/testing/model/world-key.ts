import type { StatementStep, World } from './world.ts';

/** Returns the smallest id that nothing of the process has now, so that worlds with different pasts can be equal. */
export function freshId(world: World, process: number): string {
  const taken = new Set<string | null>();
  for (const { id, batch, session } of world.statements) taken.add(id).add(batch).add(session);
  for (const { session } of world.staged) taken.add(session);
  for (const { batch } of world.writers) if (batch) taken.add(batch.id).add(batch.session);
  let count = 0;
  while (taken.has(`${process}.${count}`)) count += 1;
  return `${process}.${count}`;
}

/** Steps whose effect only their own batch can notice: once the batch is given up, it does not matter when they run. */
const OF_A_BATCH = new Set<StatementStep>([
  'load-events',
  'load-changes',
  'find-repeats',
  'close-session',
  'end-own-statements',
]);

/** Removes what nothing can notice any more. */
export function tidy(world: World): void {
  const inUse = new Set<string | null>();
  for (const { batch, waitsFor } of world.writers) {
    inUse.add(waitsFor);
    if (batch) inUse.add(batch.id).add(batch.session);
  }
  const lasting = world.statements.filter(({ step }) => step !== 'newest-epoch' && !OF_A_BATCH.has(step));
  for (const { batch, session } of lasting) inUse.add(batch).add(session);
  world.statements = world.statements.filter(
    (statement) =>
      lasting.includes(statement) || inUse.has(statement.id) || (statement.batch && inUse.has(statement.batch)),
  );
  world.staged = world.staged.filter(({ session }) => inUse.has(session));
}

/** Returns the world as text, the same for worlds that differ in nothing that matters. */
export function keyOf(world: World): string {
  world.staged.sort((a, b) => (a.session < b.session ? -1 : 1));
  world.statements.sort((a, b) => (a.id < b.id ? -1 : 1));
  world.stored.sort((a, b) => a - b);
  return JSON.stringify(world);
}
