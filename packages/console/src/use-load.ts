import { useEffect, useState } from 'preact/hooks';

/** What was loaded. The data of the last success stay while other data are loaded. */
export interface Loaded<Data> {
  readonly data: Data | undefined;
  readonly error: Error | undefined;
  readonly isLoading: boolean;
  /** Loads again. */
  readonly retry: () => void;
}

/**
 * Loads data whenever the key changes, and every `intervalMs` milliseconds if that is given.
 *
 * @param load a load that has been overtaken by another is aborted
 */
export function useLoad<Data>(
  key: string,
  load: (signal: AbortSignal) => Promise<Data>,
  intervalMs?: number,
): Loaded<Data> {
  const [attempt, setAttempt] = useState(0);
  const [loaded, setLoaded] = useState<Omit<Loaded<Data>, 'retry'>>({
    ...{ data: undefined, error: undefined, isLoading: true },
  });
  useEffect(() => {
    const controller = new AbortController();
    const { signal } = controller;
    const run = async () => {
      setLoaded((last) => ({ ...last, isLoading: true }));
      try {
        const data = await load(signal);
        if (!signal.aborted) setLoaded({ data, error: undefined, isLoading: false });
      } catch (error) {
        if (!signal.aborted) setLoaded({ data: undefined, error: error as Error, isLoading: false });
      }
    };
    void run();
    const timer = intervalMs === undefined ? undefined : setInterval(run, intervalMs);
    return () => {
      clearInterval(timer);
      controller.abort();
    };
  }, [key, attempt]);
  return { ...loaded, retry: () => setAttempt(attempt + 1) };
}
