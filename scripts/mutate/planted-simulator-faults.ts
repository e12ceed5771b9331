import type { PlantedFault } from './planted-fault.ts';
import { PLANTED_INGEST_FAULTS } from './planted-ingest-faults.ts';
import { PLANTED_REPLAY_FAULTS } from './planted-replay-faults.ts';
import { PLANTED_REPLICATED_FAULTS } from './planted-replicated-faults.ts';
import { PLANTED_SHARED_FAULTS } from './planted-shared-faults.ts';
import { PLANTED_STREAM_FAULTS } from './planted-stream-faults.ts';
import { PLANTED_WEBHOOK_FAULTS } from './planted-webhook-faults.ts';
import { PLANTED_WRITER_FAULTS } from './planted-writer-faults.ts';

/** All faults that the simulator has to find. */
export const PLANTED_SIMULATOR_FAULTS: readonly PlantedFault[] = [
  ...PLANTED_WRITER_FAULTS,
  ...PLANTED_REPLICATED_FAULTS,
  ...PLANTED_SHARED_FAULTS,
  ...PLANTED_INGEST_FAULTS,
  ...PLANTED_REPLAY_FAULTS,
  ...PLANTED_WEBHOOK_FAULTS,
  ...PLANTED_STREAM_FAULTS,
];
