import type { ComponentChildren } from 'preact';
import { Problem } from '../problem.tsx';
import type { StoppableLoad } from './use-stoppable-load.ts';

interface StoppableProps<Data> {
  readonly load: StoppableLoad<Data | undefined>;
  /** Shows what was loaded. */
  readonly children: (data: Data) => ComponentChildren;
}

/** What is loaded, and while it takes long, a button that cancels it; or what went wrong. */
export function Stoppable<Data>({ load, children }: StoppableProps<Data>) {
  const { data, error, isLoading, isStopped, stop, retry } = load;
  return (
    <>
      {isLoading && (
        <div class="bar late">
          <p role="status">Loading …</p>
          <button type="button" onClick={stop}>
            Cancel
          </button>
        </div>
      )}
      {isLoading && !data && <div class="skeleton late" aria-hidden="true" />}
      {isStopped && <p>Cancelled.</p>}
      {error && <Problem error={error} />}
      {(error || isStopped) && (
        <p>
          <button type="button" onClick={retry}>
            Retry
          </button>
        </p>
      )}
      {data !== undefined && <div class={isLoading ? 'stale' : undefined}>{children(data)}</div>}
    </>
  );
}
