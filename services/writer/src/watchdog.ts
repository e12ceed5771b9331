/** Notices when something that should keep happening has stopped. */
export interface Watchdog {
  /** It has happened. The first time begins the watch. */
  alive(): void;
  /** Nothing is expected until the next sign of life. */
  pause(): void;
  stop(): void;
}

/**
 * Calls `onSilence` once when nothing happened for `silenceMs`. kafkajs can stop fetching without a crash that anyone
 * is told of; nothing but a restart mends that.
 */
export function createWatchdog(silenceMs: number, onSilence: () => void): Watchdog {
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;

  function pause(): void {
    clearTimeout(timer);
    timer = undefined;
  }

  return {
    pause,
    alive() {
      if (stopped) return;
      if (timer) timer.refresh();
      else timer = setTimeout(onSilence, silenceMs);
    },
    stop() {
      stopped = true;
      pause();
    },
  };
}
