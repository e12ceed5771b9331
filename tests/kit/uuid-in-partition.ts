import { randomUUID } from 'node:crypto';
import { eventHash } from '@sluice/shared/rows/row-hashes';

/** Returns a random uuid of an event that goes to a partition that is wanted. */
export function uuidInPartition(partitions: number, isWanted: (partition: number) => boolean): string {
  for (;;) {
    const uuid = randomUUID();
    if (isWanted(eventHash(uuid) % partitions)) return uuid;
  }
}

/** A submission with an event for each of two partitions. */
export function submissionToBoth() {
  const uuids = [0, 1].map((wanted) => uuidInPartition(2, (partition) => partition === wanted));
  return { foreignUserGroupId: 'g', events: uuids.map((uuid) => ({ event: 'e', uuid })) };
}
