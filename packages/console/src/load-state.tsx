import type { ComponentChildren } from 'preact';
import { Problem } from './problem.tsx';
import { ScopeProblem } from './scope-problem.tsx';
import type { Loaded } from './use-load.ts';

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
