// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are pieces of source code

import type { Mutation } from './mutation.ts';
import { PLANTED_INGEST_FAULTS } from './planted-ingest-faults.ts';

/** Faults that prove the simulator: it has to find each of them within a minute. */
export const PLANTED_FAULTS: readonly Mutation[] = [...PLANTED_INGEST_FAULTS];
