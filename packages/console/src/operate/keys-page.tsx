import { useState } from 'preact/hooks';
import { type CreatedKey, formatNumber, getJson, type Key, type Keys, request, sendJson } from '../base/base.ts';
import {
  ConfirmButton,
  CsvButton,
  DocumentTable,
  LoadState,
  Problem,
  Snippet,
  Time,
  tableOf,
  useAction,
  useLoad,
} from '../parts/parts.ts';

/** What a key with a scope may do. */
const SCOPES: Readonly<Record<Key['scopes'][number], string>> = {
  ingest: 'send events and properties',
  query: 'read events, users and organizations, and use this console',
  delete: 'delete users with all of their events',
  sql: 'send SQL over everything in the workspace',
  webhooks: 'have events sent to any public address',
  admin: 'create and revoke keys, read and replay dead letters, share dashboards',
};

/** The keys of the workspace; new ones are created, and others revoked. */
export function KeysPage() {
  const { count, outcome, failure, act } = useAction();
  const [created, setCreated] = useState<CreatedKey>();
  const loaded = useLoad(`keys ${count}`, (signal) => getJson<Keys>('keys', signal));
  const { data } = loaded;
  const create = (given: object) =>
    act(async () => {
      const response = await sendJson('keys', 'POST', given);
      setCreated(await response.json());
      return 'The key is created. Services accept it within a second.';
    });
  const revoke = ({ id }: Key) =>
    act(async () => {
      await request(`keys/${encodeURIComponent(id)}`, { method: 'DELETE' });
      if (created?.id === id) setCreated(undefined);
      return `The key ${id} is revoked. Services refuse it within a second.`;
    });
  const own = data?.keys.find(({ current }) => current);
  return (
    <>
      <h1>Keys</h1>
      <LoadState loaded={loaded} scope="admin" />
      {failure && <Problem error={failure} />}
      <p role="status">{outcome}</p>
      {created && (
        <div class="notice">
          <Snippet title={`The new key ${created.id}`} text={created.key} />
          <p>It is shown only now: copy it to where it is used. Nobody can read it again.</p>
        </div>
      )}
      {data && !data.changeable && (
        <p class="notice">
          Keys are created and revoked by the operator here: <code>sluice keys create</code> and{' '}
          <code>sluice keys revoke</code>.
        </p>
      )}
      {data?.changeable && own && (
        <NewKeyForm key={created?.id ?? ''} own={own} onCreate={(given) => void create(given)} />
      )}
      {data && <KeyTable {...data} onRevoke={(one) => void revoke(one)} />}
      {data && <CsvButton name="Keys" table={() => tableOf(data.keys)} />}
    </>
  );
}

interface NewKeyFormProps {
  /** The key of this session: it gives no more than it has. */
  readonly own: Key;
  readonly onCreate: (given: object) => void;
}

function NewKeyForm({ own, onCreate }: NewKeyFormProps) {
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const rateLimit = String(form.get('rateLimit'));
    const name = String(form.get('name')).trim();
    onCreate({
      scopes: form.getAll('scopes'),
      ...(name !== '' && { name }),
      ...(rateLimit !== '' && { rateLimit: Number(rateLimit) }),
    });
  };
  const others = Object.keys(SCOPES).filter((scope) => !own.scopes.some((one) => one === scope));
  return (
    <form class="filters" aria-label="New key" onSubmit={submit}>
      <fieldset class="scopes">
        <legend>What the new key may do</legend>
        {own.scopes.map((scope) => (
          <label key={scope}>
            <input type="checkbox" name="scopes" value={scope} /> <strong>{scope}</strong>: {SCOPES[scope]}
          </label>
        ))}
      </fieldset>
      {others.length > 0 && (
        <p class="muted">A key gives only scopes that it has. Yours cannot give: {others.join(', ')}.</p>
      )}
      <div class="fields">
        <label>
          What it is for
          <input name="name" maxLength={100} autocomplete="off" placeholder="web shop" />
        </label>
        <label>
          Events or queries a second
          <input
            type="number"
            name="rateLimit"
            min={1}
            max={own.rateLimit ?? undefined}
            placeholder={own.rateLimit === null ? 'no limit of its own' : `${own.rateLimit}`}
          />
        </label>
      </div>
      <div class="actions">
        <button type="submit" class="primary">
          Create a key
        </button>
      </div>
    </form>
  );
}

function KeyTable({ keys, changeable, onRevoke }: Keys & { readonly onRevoke: (key: Key) => void }) {
  const isLimited = keys.some(({ rateLimit }) => rateLimit !== null);
  return (
    <DocumentTable
      label="Keys of the workspace"
      caption="Keys of the workspace"
      columns={['Key', 'Name', 'Scopes', isLimited && 'Limit', 'Created', changeable && 'Revoke']}
    >
      {keys.map((key) => (
        <tr key={key.id}>
          <th scope="row">{key.id}</th>
          <td class="text">
            <bdi>{key.name}</bdi>
          </td>
          <td class="text">{key.scopes.join(', ')}</td>
          {isLimited && <td>{key.rateLimit !== null && `${formatNumber(key.rateLimit)} a second`}</td>}
          <td>{key.createdAt !== null && <Time value={key.createdAt} />}</td>
          {changeable && (
            <td>
              {key.current ? (
                'this session'
              ) : (
                <ConfirmButton
                  label="Revoke"
                  subject={key.id}
                  question="Whatever uses it is refused."
                  confirm="Revoke it"
                  onConfirm={() => onRevoke(key)}
                />
              )}
            </td>
          )}
        </tr>
      ))}
    </DocumentTable>
  );
}
