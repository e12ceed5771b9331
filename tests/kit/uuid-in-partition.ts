import { randomUUID } from 'node:crypto';
import { eventHash } from '@sluice/shared/rows/row-hashes';

/** Returns a random uuid of an event that goes to a partition that is wanted. */
export function uuidInPartition(partitions: number, isWanted: (partition: number) => boolean): string {
  for (;;) {
    const uuid = randomUUID();
    if (isWanted(eventHash(uuid) % partitions)) return uuid;
  }
}
