import { useState } from 'preact/hooks';
import { getJson, request, sendJson, type View } from '../api.ts';
import { ConfirmButton } from '../confirm-button.tsx';
import { Problem } from '../problem.tsx';
import { hrefOf } from '../route.ts';
import { Time } from '../time.tsx';
import { useLoad } from '../use-load.ts';
import { NameForm } from './name-form.tsx';
import { hrefOfView, REPORT_TITLES } from './view-address.ts';

/** The saved views of the workspace: each can be opened, renamed and deleted. */
export function ViewsPage() {
  const [changes, setChanges] = useState(0);
  const [done, setDone] = useState<string>();
  const [failure, setFailure] = useState<Error>();
  const { data, error } = useLoad(`views ${changes}`, (signal) =>
    getJson<{ readonly views: readonly View[] }>('views', signal),
  );
  const act = async (action: () => Promise<unknown>, said: string) => {
    setFailure(undefined);
    try {
      await action();
      setDone(said);
    } catch (caught) {
      setFailure(caught as Error);
    }
    setChanges((count) => count + 1);
  };
  return (
    <>
      <h1>Views</h1>
      <p role="status">{done}</p>
      {error && <Problem error={error} />}
      {failure && <Problem error={failure} />}
      {!data && !error && <p>Loading …</p>}
      {data?.views.length === 0 && (
        <p>
          There are no saved views. <a href={hrefOf(['explore'])}>Explore</a> the events, and save what you want to see
          again.
        </p>
      )}
      {data && data.views.length > 0 && <ViewTable views={data.views} act={act} />}
    </>
  );
}

interface ViewTableProps {
  readonly views: readonly View[];
  readonly act: (action: () => Promise<unknown>, said: string) => Promise<void>;
}

function ViewTable({ views, act }: ViewTableProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
    <section class="scroll" aria-label="Views" tabIndex={0}>
      <table class="documents">
        <caption>Everybody of the workspace sees them</caption>
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col">Report</th>
            <th scope="col">Changed</th>
            <th scope="col">Actions</th>
          </tr>
        </thead>
        <tbody>
          {views.map((view) => (
            <ViewRow key={view.id} view={view} act={act} />
          ))}
        </tbody>
      </table>
    </section>
  );
}

function ViewRow({ view, act }: { readonly view: View } & Pick<ViewTableProps, 'act'>) {
  const [isRenamed, setIsRenamed] = useState(false);
  const path = `views/${view.id}`;
  const rename = async (name: string) => {
    setIsRenamed(false);
    await act(() => sendJson(path, 'PATCH', { name }), `“${view.name}” is now “${name}”.`);
  };
  return (
    <tr>
      <th scope="row">
        <a href={hrefOfView(view)}>
          <bdi>{view.name}</bdi>
        </a>
      </th>
      <td>{REPORT_TITLES[view.report]}</td>
      <td>
        <Time value={view.changedAt} />
      </td>
      <td>
        {isRenamed ? (
          <NameForm
            {...{ label: 'New name', action: 'Rename', value: view.name, onName: rename }}
            onCancel={() => setIsRenamed(false)}
          />
        ) : (
          <div class="row-actions">
            <button type="button" onClick={() => setIsRenamed(true)}>
              Rename<span class="hidden"> {view.name}</span>
            </button>
            <ConfirmButton
              label="Delete"
              subject={view.name}
              question="Delete it? Dashboards that have it show that it is gone."
              confirm="Delete it"
              onConfirm={() => void act(() => request(path, { method: 'DELETE' }), `“${view.name}” is deleted.`)}
            />
          </div>
        )}
      </td>
    </tr>
  );
}
