/** Over how long a time the load is measured, in milliseconds. */
const WINDOW_MS = 100;

/** Returns how busy the event loop was just now: the share of its time that was work, from 0 to 1. */
export type LoadMeter = () => number;

export function createLoadMeter(): LoadMeter {
  let since = performance.eventLoopUtilization();
  let share = 0;
  return () => {
    const { active, idle, utilization } = performance.eventLoopUtilization(since);
    if (active + idle >= WINDOW_MS) {
      share = utilization;
      since = performance.eventLoopUtilization();
    }
    return share;
  };
}
