import { ApiError } from './api.ts';

/** Says what went wrong, with every fault that query-api has named. */
export function Problem({ error }: { readonly error: Error }) {
  const faults = error instanceof ApiError ? error.faults : [];
  return (
    <div class="problem" role="alert">
      <p>{error.message}</p>
      {faults.length > 0 && (
        <ul>
          {faults.map((fault) => (
            <li key={fault}>{fault}</li>
          ))}
        </ul>
      )}
    </div>
  );
}
