import { STATEMENTS } from './statements.ts';
import type { TemporaryTables } from './temporary-tables.ts';

/** A mutation has not ended. It goes on in ClickHouse, and the erasure after it. */
export class RemovalRunning extends Error {
  override readonly name = 'RemovalRunning';
}

/** A part is being moved to another disk. It goes on in ClickHouse. */
export class MoveRunning extends Error {
  override readonly name = 'MoveRunning';
}

/** A mutation that has not ended. `failure` is empty while it has not failed. */
interface Mutation {
  readonly table: string;
  readonly mutation: string;
  readonly failure: string;
}

/**
 * Ends removals that have failed.
 *
 * @throws {RemovalRunning} while another mutation runs: the next would only wait for it
 * @throws {Error} while one fails that is no removal, such as a migration's: it goes on, and the erasure after it
 */
export async function requireNoRemovals(session: TemporaryTables): Promise<void> {
  await session.run(STATEMENTS['end-failed-removals']);
  const [first] = await session.read<Mutation>(STATEMENTS['find-removals']);
  if (first === undefined) return;
  const { table, mutation, failure } = first;
  if (failure === '') throw new RemovalRunning('ClickHouse is still removing rows');
  throw new Error(
    `the mutation ${mutation} of the table ${table} fails, and no rows can be removed before it ends; ` +
      `mend its cause, or end it with KILL MUTATION: ${failure}`,
  );
}
