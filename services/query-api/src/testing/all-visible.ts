import type { Visibility } from '../store/stores.ts';

/** No event is hidden, and none expires. */
export const ALL_VISIBLE: Visibility = {
  hiddenCondition: async () => undefined,
  keptFrom: async () => undefined,
};
