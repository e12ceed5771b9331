import { useState } from 'preact/hooks';
import { type Dashboard, getAll, getJson, hrefOf, request, type View } from '../base/base.ts';
import { ConfirmButton, LoadState, NameForm, Problem, useLoad } from '../parts/parts.ts';
import { AddView } from './add-view.tsx';
import { Share } from './share.tsx';
import { READ_EVERY_MS } from './tile.tsx';
import { Tiles } from './tiles.tsx';
import { useSaved } from './use-saved.ts';

/** A dashboard: saved views on one page. */
export function DashboardPage({ id }: { readonly id: string }) {
  const path = `dashboards/${encodeURIComponent(id)}`;
  const loaded = useLoad(path, (signal) => getJson<Dashboard>(path, signal));
  if (loaded.data) return <OpenDashboard path={path} loaded={loaded.data} />;
  return (
    <>
      <h1>Dashboard</h1>
      <LoadState loaded={loaded} />
    </>
  );
}

interface OpenDashboardProps {
  readonly path: string;
  readonly loaded: Dashboard;
}

function OpenDashboard({ path, loaded }: OpenDashboardProps) {
  const [isEdited, setIsEdited] = useState(loaded.tiles.length === 0);
  const { dashboard, change, failure, isSaving } = useSaved(path, loaded);
  const { id, name, tiles } = dashboard;
  // What the numbers lead to is up to these. Without them there are the numbers alone.
  const { data: saved } = useLoad('views', (signal) => getAll<'views', View>('views', signal), READ_EVERY_MS);
  return (
    <>
      <div class="bar">
        <h1>
          <bdi>{name}</bdi>
        </h1>
        {isSaving && <span class="muted">Saving …</span>}
        <button type="button" aria-pressed={isEdited} onClick={() => setIsEdited(!isEdited)}>
          Edit
        </button>
      </div>
      {failure && <Problem error={failure} />}
      {isEdited && <AddView tiles={tiles} onAdd={(tile) => change({ tiles: [...tiles, tile] })} />}
      {tiles.length === 0 && <p class="muted">There is nothing on this dashboard yet.</p>}
      <Tiles
        {...{ dashboard: id, tiles, views: saved?.views ?? [], isEdited }}
        onChange={(tiles) => change({ tiles })}
      />
      {isEdited && (
        <>
          <h2>Name</h2>
          <NameForm
            key={name}
            {...{ label: 'Name of the dashboard', action: 'Rename', value: name }}
            onName={async (name) => change({ name })}
          />
          <Share dashboard={id} />
          <DeleteDashboard path={path} />
        </>
      )}
    </>
  );
}

function DeleteDashboard({ path }: Pick<OpenDashboardProps, 'path'>) {
  const [failure, setFailure] = useState<Error>();
  const remove = async () => {
    try {
      await request(path, { method: 'DELETE' });
      location.hash = hrefOf(['dashboards']);
    } catch (error) {
      setFailure(error as Error);
    }
  };
  return (
    <>
      <h2>Delete</h2>
      <ConfirmButton
        label="Delete the dashboard"
        question="Delete it for everybody, with its links? The views stay."
        confirm="Delete it"
        onConfirm={() => void remove()}
      />
      {failure && <Problem error={failure} />}
    </>
  );
}
