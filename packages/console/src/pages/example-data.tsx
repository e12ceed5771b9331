import { formatNumber, hrefOf, type LoadedExample, request } from '../base/base.ts';
import { ConfirmButton, Problem, useAction } from '../parts/parts.ts';

/** A button that loads the example data into an empty workspace. */
export function LoadExample() {
  const { outcome, failure, act } = useAction();
  const load = async () => {
    const response = await request('example-data', { method: 'POST' });
    const { users, events } = (await response.json()) as LoadedExample;
    return `${formatNumber(events)} events of ${formatNumber(users)} users are on their way.`;
  };
  return (
    <>
      <button type="button" onClick={() => void act(load)}>
        Load example data
      </button>
      {outcome && (
        <p role="status">
          {outcome} <a href={hrefOf(['settings'])}>Settings</a> remove them again.
        </p>
      )}
      {failure && <Problem error={failure} />}
    </>
  );
}

/** A button that removes the example data. It says so where there were none. */
export function RemoveExample() {
  const { outcome, failure, act } = useAction();
  const remove = async () => {
    const response = await request('example-data', { method: 'DELETE' });
    const { users } = (await response.json()) as Pick<LoadedExample, 'users'>;
    return users === 0 ? 'There were no example data.' : 'The example data are removed.';
  };
  return (
    <>
      <ConfirmButton
        label="Remove example data"
        question="The users of the example are deleted with their events, and nobody else."
        confirm="Remove them"
        onConfirm={() => void act(remove)}
      />
      <p role="status">{outcome}</p>
      {failure && <Problem error={failure} />}
    </>
  );
}
