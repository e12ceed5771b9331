import { ApiError } from './base/base.ts';

interface ProblemProps {
  readonly error: Error;
  /** Tries again. Default: there is no button for it. */
  readonly onRetry?: () => void;
}

/** Says what went wrong, with every error that query-api has named. */
export function Problem({ error, onRetry }: ProblemProps) {
  const errors = error instanceof ApiError ? error.errors : [];
  return (
    <div class="problem" role="alert">
      <p>{error.message}</p>
      {errors.length > 0 && (
        <ul>
          {errors.map((error) => (
            <li key={error}>{error}</li>
          ))}
        </ul>
      )}
      {onRetry && (
        <button type="button" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  );
}
