import { useId, useRef, useState } from 'preact/hooks';
import { ApiError, type DashboardLink, type DashboardLinkWithKey, getJson, request, sendJson } from '../base/base.ts';
import { ConfirmButton, DocumentTable, NameForm, Problem, Time, useLoad } from '../parts/parts.ts';
import { addressOf } from './link.ts';

/** The read-only links of a dashboard: makes, lists and revokes them. */
export function Share({ dashboard }: { readonly dashboard: string }) {
  const path = `dashboards/${encodeURIComponent(dashboard)}/links`;
  const [changes, setChanges] = useState(0);
  const [made, setMade] = useState<DashboardLinkWithKey>();
  const [done, setDone] = useState<string>();
  const [failure, setFailure] = useState<Error>();
  const { data, error } = useLoad(`${path} ${changes}`, (signal) =>
    getJson<{ readonly links: readonly DashboardLink[] }>(path, signal),
  );
  const act = async (action: () => Promise<string>) => {
    setFailure(undefined);
    try {
      setDone(await action());
    } catch (caught) {
      setFailure(caught as Error);
    }
    setChanges((count) => count + 1);
  };
  const make = (name: string) =>
    act(async () => {
      setMade((await (await sendJson(path, 'POST', { name })).json()) as DashboardLinkWithKey);
      return 'The link is made.';
    });
  const revoke = ({ id, name }: DashboardLink) =>
    act(async () => {
      await request(`${path}/${id}`, { method: 'DELETE' });
      if (made?.id === id) setMade(undefined);
      return `The link for “${name}” is revoked.`;
    });
  return (
    <section aria-labelledby="share">
      <h2 id="share">Read-only links</h2>
      <p>Whoever has a link sees this dashboard and its numbers, and nothing else, until the link is revoked.</p>
      {error && <LinksProblem error={error} />}
      {failure && <Problem error={failure} />}
      {data && <NameForm label="Who or what it is for" action="Make a link" onName={make} />}
      {made && <NewLink link={made} dashboard={dashboard} />}
      <p role="status">{done}</p>
      {data && data.links.length > 0 && (
        <DocumentTable label="Links" caption="Links that work" columns={['For', 'Made', 'Revoke']}>
          {data.links.map((link) => (
            <tr key={link.id}>
              <th scope="row">
                <bdi>{link.name}</bdi>
              </th>
              <td>
                <Time value={link.createdAt} />
              </td>
              <td>
                <ConfirmButton
                  label="Revoke"
                  subject={link.name}
                  question="Revoke it? It cannot be used again."
                  confirm="Revoke it"
                  onConfirm={() => void revoke(link)}
                />
              </td>
            </tr>
          ))}
        </DocumentTable>
      )}
    </section>
  );
}

function LinksProblem({ error }: { readonly error: Error }) {
  if (!(error instanceof ApiError && error.status === 403)) return <Problem error={error} />;
  return (
    <p>
      Only a key with the scope <code>admin</code> makes and revokes links.
    </p>
  );
}

interface NewLinkProps {
  readonly link: DashboardLinkWithKey;
  readonly dashboard: string;
}

/** The address of a new link, which is shown once. */
function NewLink({ link, dashboard }: NewLinkProps) {
  const id = useId();
  const input = useRef<HTMLInputElement>(null);
  const [copied, setCopied] = useState<string>();
  const copy = async () => {
    input.current?.select();
    try {
      await navigator.clipboard.writeText(input.current?.value ?? '');
      setCopied('It is copied.');
    } catch {
      // Pages without TLS may not write to the clipboard.
      setCopied('It is selected: copy it.');
    }
  };
  return (
    <div class="name-form">
      <label for={id}>The link, shown only now</label>
      <input id={id} ref={input} class="address" value={addressOf({ dashboard, key: link.key })} readOnly />
      <button type="button" onClick={() => void copy()}>
        Copy
      </button>
      <span role="status">{copied}</span>
    </div>
  );
}
