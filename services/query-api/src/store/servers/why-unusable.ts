import { describeRange } from '@sluice/shared/servers/partition-range';
import type { PolledServer } from './polled-server.ts';

export interface Expected {
  /** How many migrations this version knows. */
  readonly migrations: number;
  /** The last partition of the ranges of all servers; undefined where they have all partitions. */
  readonly lastPartition: number | undefined;
}

/** Returns why a server cannot be read; `undefined` when it can. */
export function whyUnusable(
  { isAway, failure, lastState, server }: PolledServer,
  expected: Expected,
): string | undefined {
  if (isAway) return 'does not respond';
  if (!lastState) return failure === undefined ? 'has not answered yet' : 'cannot be reached';
  const { identity, migrations, isTooNew, partitionCount } = lastState;
  if (isTooNew) return 'has the tables of a newer version';
  if (migrations < expected.migrations) return 'does not have the tables of this version yet';
  if (!identity) return 'no writer has stored into it yet';
  if (identity.server !== '' && identity.server !== server.name) return `is the server ${identity.server}`;
  const partitions = describeRange(server.partitions);
  if (identity.partitions !== partitions) return `stores the partitions ${identity.partitions}, not ${partitions}`;
  if (identity.state === 'filling') return 'is being filled';
  const { lastPartition: last } = expected;
  const isEnd = last === undefined || partitionCount === undefined || partitionCount === last + 1;
  return isEnd ? undefined : `has ${partitionCount} partitions, and the file those up to ${last}`;
}
