import { useEffect, useState } from 'preact/hooks';

/** What was loaded. The data of the last success stay while other data are loaded. */
export interface Loaded<Data> {
  readonly data: Data | undefined;
  readonly error: Error | undefined;
  /** Not while data are only refreshed. */
  readonly isLoading: boolean;
  /** Whether somebody has stopped it; then there are neither data nor an error. */
  readonly isStopped: boolean;
  /** Stops what is being loaded, until the key changes. */
  readonly stop: () => void;
  /** Loads again, also what was stopped. */
  readonly retry: () => void;
}

type Outcome<Data> = Pick<Loaded<Data>, 'data' | 'error' | 'isLoading'>;

const NOTHING = { data: undefined, error: undefined, isLoading: false } as const;

/**
 * Loads data whenever the key changes, and refreshes them every `refreshMs` milliseconds if that is given.
 *
 * @param load a load that has been overtaken by another is aborted
 */
export function useLoad<Data>(
  key: string,
  load: (signal: AbortSignal) => Promise<Data>,
  refreshMs?: number,
): Loaded<Data> {
  const [attempt, setAttempt] = useState(0);
  const [stopped, setStopped] = useState<string>();
  const [outcome, setOutcome] = useState<Outcome<Data>>({ ...NOTHING, isLoading: true });
  const isStopped = stopped === key;
  useEffect(() => {
    if (isStopped) {
      setOutcome(NOTHING);
      return undefined;
    }
    const controller = new AbortController();
    const { signal } = controller;
    let isRunning = false;
    const run = async () => {
      // One that came later could be over earlier.
      if (isRunning) return;
      isRunning = true;
      try {
        const data = await load(signal);
        if (!signal.aborted) setOutcome({ ...NOTHING, data });
      } catch (error) {
        if (!signal.aborted) setOutcome({ ...NOTHING, error: error as Error });
      }
      isRunning = false;
    };
    setOutcome((last) => ({ ...last, isLoading: true }));
    void run();
    const timer = refreshMs === undefined ? undefined : setInterval(run, refreshMs);
    return () => {
      clearInterval(timer);
      controller.abort();
    };
  }, [key, attempt, isStopped]);
  return {
    ...outcome,
    isStopped,
    stop: () => setStopped(key),
    retry: () => {
      setStopped(undefined);
      setAttempt(attempt + 1);
    },
  };
}
