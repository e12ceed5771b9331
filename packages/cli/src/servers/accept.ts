import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { printable } from '@sluice/shared/printable';
import type { Terminal } from '../terminal.ts';
import { readIdentity, recordState } from './identity.ts';

/**
 * Says what a server lacks, asks whether that is gone for good, and records that the server is complete. Returns the exit
 * code.
 *
 * @throws ClickHouse's errors
 */
export async function runAccept(
  name: string,
  client: ClickHouseClient,
  yes: boolean,
  { print, confirm }: Terminal,
): Promise<number> {
  const identity = await readIdentity(client);
  if (identity?.state !== 'incomplete') {
    print(
      identity?.state === 'filling'
        ? `${name} is being filled: run "sluice servers copy" to its end.`
        : `${name} is not incomplete: there is nothing to accept.`,
    );
    return 1;
  }
  print(printable(`${name} is incomplete: ${identity.detail}`));
  print('If another server is complete, copy it: "sluice servers copy". Otherwise accept that this is gone for good.');
  if (!yes && !(await confirm('Accept? [y/N] '))) {
    print('nothing was changed');
    return 1;
  }
  await recordState(client, 'complete');
  print(`${name} is complete from now on, and is read as the others are`);
  return 0;
}
