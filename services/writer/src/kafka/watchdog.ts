/** Notices when something that should keep happening has stopped. */
export interface Watchdog {
  /** Reports that it has happened. The first call begins the watch. */
  alive(): void;
  /** Suspends the watch until the next call of {@link alive}. */
  pause(): void;
  stop(): void;
}

/**
 * Calls `onSilence` once when {@link Watchdog.alive} was not called for `silenceMs`. kafkajs can stop fetching without a
 * crash event; only a restart of the process helps then.
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
