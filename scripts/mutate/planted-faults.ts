// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are pieces of source code

import type { Mutation } from './mutation.ts';

/** Faults that prove the simulator: it has to find each of them within a minute. */
export const PLANTED_FAULTS: readonly Mutation[] = [];
