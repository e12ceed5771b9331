import { useState } from 'preact/hooks';
import { getJson, type IdentityPage, request } from '../base/base.ts';
import {
  ConfirmButton,
  LoadState,
  PageButtons,
  Problem,
  RowList,
  Time,
  useAction,
  useLoad,
  usePages,
} from '../parts/parts.ts';

/** How a visitor became this user, as the table says it. */
const BY = { event: 'an event', request: 'somebody' } as const;

/** The anonymous visitors who turned out to be a user, each of which can be taken back. */
export function Identities({ id }: { readonly id: string }) {
  const actions = useAction();
  const pages = usePages();
  /** Those that were taken back here: it takes a moment until it is stored. */
  const [undone, setUndone] = useState<ReadonlySet<string>>(new Set());
  const query = new URLSearchParams([['userId', id], ...pages.params]);
  const loaded = useLoad(query.toString(), (signal) => getJson<IdentityPage>(`identities?${query}`, signal));
  const { data } = loaded;
  const shown = data?.results.filter(({ anonymousId }) => !undone.has(anonymousId)) ?? [];
  const undo = (anonymousId: string) =>
    actions.act(async () => {
      // A plus is escaped as well: ingest-api refuses a bare one.
      const response = await request(`identities?anonymousId=${encodeURIComponent(anonymousId)}`, { method: 'DELETE' });
      // A body that nobody reads keeps its connection.
      await response.arrayBuffer();
      setUndone(new Set([...undone, anonymousId]));
      return `${anonymousId} is nobody again: within seconds, its events are no longer those of this user.`;
    });
  return (
    <section aria-labelledby="identities">
      <h2 id="identities">Visitors</h2>
      {data && shown.length === 0 && <p class="muted">No anonymous visitor is known to be this user.</p>}
      {shown.length > 0 && (
        <RowList label="Visitors who are this user">
          <table class="totals">
            <caption>Before signing in, or on another device</caption>
            <thead>
              <tr>
                <th scope="col">Anonymous id</th>
                <th scope="col">Since</th>
                <th scope="col">Said by</th>
                <th scope="col">
                  <span class="hidden">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {shown.map(({ anonymousId, linkedAt, by }) => (
                <tr key={anonymousId}>
                  <th scope="row">
                    <bdi>{anonymousId}</bdi>
                  </th>
                  <td>
                    <Time value={linkedAt} />
                  </td>
                  <td>{BY[by]}</td>
                  <td>
                    <ConfirmButton
                      label="Undo"
                      subject={anonymousId}
                      question="Is it somebody else?"
                      confirm="Undo"
                      onConfirm={() => void undo(anonymousId)}
                    />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </RowList>
      )}
      <p role="status">{actions.outcome}</p>
      {actions.failure && <Problem error={actions.failure} />}
      <LoadState loaded={loaded} />
      <PageButtons pages={pages} loaded={loaded} noun="visitors" />
    </section>
  );
}
