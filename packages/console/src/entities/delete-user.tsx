import { useState } from 'preact/hooks';
import { ingestUrl, key, request } from '../base/base.ts';
import { quoted } from '../events/events.ts';
import { CopyButton, Problem } from '../parts/parts.ts';

interface DeleteUserProps {
  readonly id: string;
  /** Called once the deletion is accepted. */
  readonly onDeleted: () => void;
}

/** Deletes a user, after somebody has typed the identifier. Where that is not possible from here, the command does it. */
export function DeleteUser({ id, onDeleted }: DeleteUserProps) {
  const [isRunning, setIsRunning] = useState(false);
  const [error, setError] = useState<Error>();
  const remove = async () => {
    setIsRunning(true);
    try {
      const response = await request(`users?${queryOf(id)}`, { method: 'DELETE' });
      // A body that nobody reads keeps its connection.
      await response.arrayBuffer();
      onDeleted();
    } catch (failure) {
      setError(failure as Error);
      setIsRunning(false);
    }
  };
  const url = ingestUrl();
  const command = `curl -X DELETE ${quoted(`${url}/v1/users?${queryOf(id)}`)} -H 'Authorization: Bearer YOUR_KEY'`;
  return (
    <section class="danger" aria-labelledby="delete">
      <h2 id="delete">Delete this user</h2>
      <p>
        Its properties and all its events are deleted, those of its visitors among them. Nobody can bring them back.
      </p>
      {key.value === '' ? (
        <p>You use no key. Use one that has the scope delete as well, or run the command with one.</p>
      ) : (
        <Confirmation id={id} isRunning={isRunning} onConfirm={() => void remove()} />
      )}
      {error && <Problem error={error} />}
      <details open={error !== undefined || key.value === ''}>
        <summary>With curl</summary>
        <pre>{command}</pre>
        <p class="muted">{url} stands for the address of ingest-api, which may be another one here.</p>
        <CopyButton label="Copy" subject="the command" textOf={() => command} />
      </details>
    </section>
  );
}

/** Returns the query of the deletion. A plus is escaped as well: ingest-api refuses a bare one. */
function queryOf(id: string): string {
  return `foreignId=${encodeURIComponent(id)}`;
}

interface ConfirmationProps {
  readonly id: string;
  readonly isRunning: boolean;
  readonly onConfirm: () => void;
}

function Confirmation({ id, isRunning, onConfirm }: ConfirmationProps) {
  const [typed, setTyped] = useState('');
  // A field has no line breaks.
  const isConfirmed = typed === id.replaceAll(/[\r\n]/g, '');
  return (
    <form
      class="bar"
      aria-label="Delete this user"
      onSubmit={(event) => {
        event.preventDefault();
        if (isConfirmed && !isRunning) onConfirm();
      }}
    >
      <label>
        Type the identifier to confirm{' '}
        <input
          value={typed}
          dir="auto"
          autocomplete="off"
          spellcheck={false}
          onInput={({ currentTarget }) => setTyped(currentTarget.value)}
        />
      </label>
      <button type="submit" class="primary" disabled={!isConfirmed || isRunning}>
        {isRunning ? 'Deleting …' : 'Delete the user'}
      </button>
    </form>
  );
}
