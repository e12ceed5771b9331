import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { ApiError, access } from '../base/base.ts';
import { Problem } from './problem.tsx';

/** What was loaded. The data of the last success stay while other data are loaded. */
export interface Loaded<Data> {
  readonly data: Data | undefined;
  readonly error: Error | undefined;
  /** Whether data are loaded for the first time or for another key; a refresh does not count. */
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
      // A load that begins later could end earlier.
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

interface LoadStateProps {
  readonly loaded: Omit<Loaded<unknown>, 'data'> & { readonly data?: unknown };
  /** What there is to say of the data; `null` or `false`: nothing now. Default: nothing ever, so that no room is kept for it. */
  readonly status?: ComponentChildren;
  /** The scope that the data need, if it is not that of the console. */
  readonly scope?: string;
}

/**
 * Says that something is being loaded, if that takes a while, with a button that stops it; that it was stopped; or what went
 * wrong: both with a button that tries again. It stands where the data will be.
 */
export function LoadState({ loaded, status, scope }: LoadStateProps) {
  const { data, error, isLoading, isStopped, stop, retry } = loaded;
  // Data stay while others are loaded: without a status there is no room to say so.
  const isShown = isLoading && (status !== undefined || data === undefined);
  return (
    <>
      <div class="load-state">
        <p role="status">{isShown ? <span class="late">Loading …</span> : isStopped ? 'Cancelled.' : status}</p>
        {isShown && (
          <button type="button" class="late" onClick={stop}>
            Cancel
          </button>
        )}
        {isStopped && (
          <button type="button" onClick={retry}>
            Try again
          </button>
        )}
      </div>
      {isLoading && data === undefined && <div class="skeleton late" aria-hidden="true" />}
      {error &&
        (scope ? (
          <ScopeProblem error={error} scope={scope} onRetry={retry} />
        ) : (
          <Problem error={error} onRetry={retry} />
        ))}
    </>
  );
}

interface ScopeProblemProps {
  readonly error: Error;
  readonly scope: string;
  /** Tries again. */
  readonly onRetry: () => void;
}

/** Says what went wrong; without a key, or with one that lacks the scope, also how to go on. */
function ScopeProblem({ error, scope, onRetry }: ScopeProblemProps) {
  return (
    <>
      <Problem error={error} onRetry={onRetry} />
      {error instanceof ApiError && error.status === 401 && (
        <p>
          This page needs a key with the scope <code>{scope}</code>.{' '}
          <button
            type="button"
            onClick={() => {
              access.value = 'closed';
            }}
          >
            Sign in with a key
          </button>
        </p>
      )}
      {error instanceof ApiError && error.status === 403 && (
        <p>
          This page needs a key with the scope <code>{scope}</code>. An operator makes one with{' '}
          <code>sluice keys create --workspace NAME --scopes query,{scope}</code>; then sign out, and sign in with it.
        </p>
      )}
    </>
  );
}
