/**
 * Long work calls this often. It returns a promise to await when the work has blocked the event loop for long enough,
 * else `undefined`.
 */
export type Pause = () => Promise<void> | undefined;

/** For work too short to pause. */
export const NO_PAUSE: Pause = () => undefined;
