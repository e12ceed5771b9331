import { useState } from 'preact/hooks';
import { getAll, hrefOf, request, sendJson, type View } from '../base/base.ts';
import { hrefOfView, REPORT_TITLES } from '../explore/explore.ts';
import {
  type Actions,
  ConfirmButton,
  DocumentTable,
  LoadState,
  NameForm,
  Problem,
  Time,
  useAction,
  useFocusBack,
  useLoad,
} from '../parts/parts.ts';

/** The saved views of the workspace: each can be opened, renamed and deleted. */
export function ViewsPage() {
  const { count, outcome, failure, act } = useAction();
  const loaded = useLoad(`views ${count}`, (signal) => getAll<'views', View>('views', signal));
  const { data } = loaded;
  return (
    <>
      <h1>Views</h1>
      <p role="status">{outcome}</p>
      <LoadState loaded={loaded} />
      {failure && <Problem error={failure} />}
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
  readonly act: Actions['act'];
}

function ViewTable({ views, act }: ViewTableProps) {
  return (
    <DocumentTable label="Views" columns={['Name', 'Report', 'Changed', 'Actions']}>
      {views.map((view) => (
        <ViewRow key={view.id} view={view} act={act} />
      ))}
    </DocumentTable>
  );
}

function ViewRow({ view, act }: { readonly view: View } & Pick<ViewTableProps, 'act'>) {
  const [isRenamed, setIsRenamed] = useState(false);
  const renameButton = useFocusBack(isRenamed);
  const path = `views/${view.id}`;
  const rename = async (name: string) => {
    setIsRenamed(false);
    await act(async () => {
      await sendJson(path, 'PATCH', { name });
      return `“${view.name}” is now “${name}”.`;
    });
  };
  const remove = () =>
    act(async () => {
      await request(path, { method: 'DELETE' });
      return `“${view.name}” is deleted.`;
    });
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
            <button type="button" ref={renameButton} onClick={() => setIsRenamed(true)}>
              Rename<span class="hidden"> {view.name}</span>
            </button>
            <ConfirmButton
              label="Delete"
              subject={view.name}
              question="Delete it? Dashboards that have it show that it is gone."
              confirm="Delete it"
              onConfirm={() => void remove()}
            />
          </div>
        )}
      </td>
    </tr>
  );
}
