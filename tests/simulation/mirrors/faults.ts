import type { FaultTable } from '../world/faults.ts';
import type { Random } from '../world/random.ts';
import { wipeClickHouse } from '../writer/fault-kinds.ts';
import { chooseWriterKinds, keepingLog, WRITER_FAULTS } from '../writer/faults.ts';
import type { World } from '../writer/world.ts';

const WIPE = 'wipe ClickHouse';

/** Faults of one server happen to that of the request that triggers them, else to a random one. */
export const MIRRORS_FAULTS: FaultTable<World> = { ...WRITER_FAULTS, [WIPE]: { weight: 3, begin: wipeClickHouse } };

/** Chooses which faults there are. A log that loses records is rare: then the servers need not be equal. */
export function chooseMirrorsKinds(random: Random): string[] {
  const kinds = chooseWriterKinds(random, random.isTrue(0.08));
  return random.isTrue(0.25) ? [...keepingLog(kinds), random.pick(['restore ClickHouse', WIPE])] : kinds;
}
