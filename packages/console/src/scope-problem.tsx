import { ApiError } from './base/base.ts';
import { Problem } from './problem.tsx';

interface ScopeProblemProps {
  readonly error: Error;
  readonly scope: string;
  /** Tries again. */
  readonly onRetry: () => void;
}

/** Says what went wrong; of a key without the scope also how to make one that has it. */
export function ScopeProblem({ error, scope, onRetry }: ScopeProblemProps) {
  return (
    <>
      <Problem error={error} onRetry={onRetry} />
      {error instanceof ApiError && error.status === 403 && (
        <p>
          This page needs a key with the scope <code>{scope}</code>. An operator makes one with{' '}
          <code>sluice keys create --workspace NAME --scopes query,{scope}</code>; then sign out, and sign in with it.
        </p>
      )}
    </>
  );
}
