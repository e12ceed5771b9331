import { ApiError } from './api.ts';

/** Says what went wrong, with every error that query-api has named. */
export function Problem({ error }: { readonly error: Error }) {
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
    </div>
  );
}
