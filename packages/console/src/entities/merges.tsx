import { useState } from 'preact/hooks';
import { getJson, key, type MergePage, request, sendJson } from '../base/base.ts';
import {
  ConfirmButton,
  EntityLink,
  LoadState,
  PageButtons,
  Problem,
  useAction,
  useLoad,
  usePages,
} from '../parts/parts.ts';

interface MergesProps {
  readonly id: string;
  /** Whom this user became. Default: nobody else. */
  readonly mergedInto: string | undefined;
}

/** Whom a user became, and who became it: said here, and taken back here. */
export function Merges({ id, mergedInto }: MergesProps) {
  const actions = useAction();
  const pages = usePages();
  /** What was said here of users: it takes a moment until it is stored. */
  const [said, setSaid] = useState<ReadonlyMap<string, string | undefined>>(new Map());
  const query = new URLSearchParams([['into', id], ...pages.params]);
  const loaded = useLoad(query.toString(), (signal) => getJson<MergePage>(`identities/merges?${query}`, signal));
  const into = said.has(id) ? said.get(id) : mergedInto;
  const became = loaded.data?.results.filter(({ userId }) => !said.has(userId)) ?? [];
  const say = (userId: string, other: string | undefined) =>
    actions.act(async () => {
      const response = await (other === undefined
        ? // A plus is escaped as well: ingest-api refuses a bare one.
          request(`identities/merge?userId=${encodeURIComponent(userId)}`, { method: 'DELETE' })
        : sendJson('identities/merge', 'POST', { userId, into: other }));
      // A body that nobody reads keeps its connection.
      await response.arrayBuffer();
      setSaid(new Map([...said, [userId, other]]));
      return other === undefined
        ? `${userId} is a user of its own again: within seconds, reports count it as before.`
        : `${userId} became ${other}: within seconds, reports count both as ${other}.`;
    });
  return (
    <section aria-labelledby="merges">
      <h2 id="merges">Other accounts</h2>
      {into !== undefined && (
        <p class="bar">
          <span>
            This user became <EntityLink path="users" id={into} />.
          </span>
          <ConfirmButton
            label="Undo the merge"
            question="Are they two people?"
            confirm="Undo"
            onConfirm={() => void say(id, undefined)}
          />
        </p>
      )}
      {became.length > 0 && (
        <ul class="members-page" aria-label="Users who became this one">
          {became.map(({ userId, counts }) => (
            <li key={userId}>
              <EntityLink path="users" id={userId} />
              <span class="muted">
                {counts ? 'became this user' : 'counts by itself, since this user became another one'}
              </span>
              <ConfirmButton
                label="Undo"
                subject={userId}
                question="Is it somebody else?"
                confirm="Undo"
                onConfirm={() => void say(userId, undefined)}
              />
            </li>
          ))}
        </ul>
      )}
      {into === undefined && became.length === 0 && <MergeForm id={id} onMerge={(other) => say(id, other)} />}
      <p role="status">{actions.outcome}</p>
      {actions.failure && <Problem error={actions.failure} />}
      <LoadState loaded={loaded} />
      <PageButtons pages={pages} loaded={loaded} noun="users" />
    </section>
  );
}

interface MergeFormProps {
  readonly id: string;
  readonly onMerge: (other: string) => Promise<void>;
}

/** Asks whom a user became. */
function MergeForm({ id, onMerge }: MergeFormProps) {
  const [other, setOther] = useState('');
  if (key.value === '') return <p class="muted">Only a key with the scope admin merges users.</p>;
  return (
    <form
      class="bar"
      aria-label="Merge into another user"
      onSubmit={(event) => {
        event.preventDefault();
        if (other !== '' && other !== id) void onMerge(other);
      }}
    >
      <label>
        Merge into the user{' '}
        <input
          value={other}
          dir="auto"
          autocomplete="off"
          spellcheck={false}
          onInput={({ currentTarget }) => setOther(currentTarget.value)}
        />
      </label>
      <button type="submit" disabled={other === '' || other === id}>
        Merge
      </button>
      <span class="muted">It needs the scope admin, and can be undone.</span>
    </form>
  );
}
