import { useEffect, useState } from 'preact/hooks';
import {
  ApiError,
  type Dashboard,
  formatCount,
  getAll,
  getJson,
  getRecords,
  goTo,
  hrefOf,
  pinDashboard,
  RANGES,
  request,
  route,
  type StoredDashboard,
  sendJson,
  settings,
  type View,
} from '../base/base.ts';
import { ConfirmButton, DocumentTable, LoadState, NameForm, Problem, Time, useLoad } from '../parts/parts.ts';
import { AddNote, AddView, useSaved } from './dashboard-changes.tsx';
import { forgetLink, type Link } from './link.ts';
import { ReadyMade } from './ready-made.tsx';
import { Share } from './share.tsx';
import { keysOf, nameOfTile, READ_EVERY_MS, type Read, Tile } from './tile.tsx';
import { Tiles } from './tiles.tsx';

/** The dashboards of the workspace, and a form that makes one. */
export function DashboardsPage() {
  const [failure, setFailure] = useState<Error>();
  const loaded = useLoad('dashboards', (signal) => getAll<'dashboards', StoredDashboard>('dashboards', signal));
  const { data } = loaded;
  const create = async (name: string) => {
    try {
      const { id } = (await (await sendJson('dashboards', 'POST', { name })).json()) as Dashboard;
      location.hash = hrefOf(['dashboards', id]);
    } catch (caught) {
      setFailure(caught as Error);
    }
  };
  return (
    <>
      <h1>Dashboards</h1>
      <LoadState loaded={loaded} />
      {data?.dashboards.length === 0 && (
        <p>
          There are no dashboards. A dashboard shows <a href={hrefOf(['views'])}>saved views</a> on one page.
        </p>
      )}
      {data && data.dashboards.length > 0 && <DashboardTable dashboards={data.dashboards} />}
      {data && <NameForm label="Name of a new dashboard" action="Make it" isMain onName={create} />}
      {data && <ReadyMade />}
      {failure && <Problem error={failure} />}
    </>
  );
}

function DashboardTable({ dashboards }: { readonly dashboards: readonly StoredDashboard[] }) {
  return (
    <DocumentTable label="Dashboards" columns={['Name', 'Shows', 'Changed']}>
      {dashboards.map(({ id, name, tiles, changedAt }) => (
        <tr key={id}>
          <th scope="row">
            <a href={hrefOf(['dashboards', id])}>
              <bdi>{name}</bdi>
            </a>
          </th>
          <td>{formatCount(tiles.length, 'tile')}</td>
          <td>
            <Time value={changedAt} />
          </td>
        </tr>
      ))}
    </DocumentTable>
  );
}

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
  const { dashboard, stored, change, failure, isSaving } = useSaved(path, loaded);
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
        <RangeChoice dashboard={id} />
        <button
          type="button"
          aria-pressed={settings.value.pinned.includes(id)}
          onClick={() => pinDashboard(id, !settings.value.pinned.includes(id))}
        >
          Pin to Home
        </button>
        <button type="button" aria-pressed={isEdited} onClick={() => setIsEdited(!isEdited)}>
          Edit
        </button>
      </div>
      {failure && <Problem error={failure} />}
      {isEdited && (
        <>
          <AddView tiles={tiles} onAdd={(tile) => change({ tiles: [...tiles, tile] })} />
          <AddNote onAdd={(tile) => change({ tiles: [...tiles, tile] })} />
        </>
      )}
      {tiles.length === 0 && <p class="muted">There is nothing on this dashboard yet.</p>}
      <Tiles
        {...{ dashboard: id, tiles, stored, views: saved?.views ?? [], isEdited, range: rangeNow() }}
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

/** Returns the range of all tiles, which the address has; empty: each has its own. */
function rangeNow(): string {
  return route.value.params.get('range') ?? '';
}

/** Chooses one range for all tiles of a dashboard. */
function RangeChoice({ dashboard }: { readonly dashboard: string }) {
  const range = rangeNow();
  const choose = (chosen: string) => {
    const params = new URLSearchParams(chosen === '' ? [] : [['range', chosen]]);
    goTo(hrefOf(['dashboards', dashboard], params), false);
  };
  return (
    <label>
      <span class="hidden">Range of the dashboard</span>
      <select value={range} onChange={({ currentTarget }) => choose(currentTarget.value)}>
        <option value="">Each its own time</option>
        {Object.entries(RANGES).map(([name, { label }]) => (
          <option key={name} value={name}>
            {label}
          </option>
        ))}
        {range !== '' && !Object.hasOwn(RANGES, range) && <option value={range}>{range}</option>}
      </select>
    </label>
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

/** The dashboards of the workspace that were pinned in this browser. */
export function PinnedDashboards() {
  return settings.value.pinned.map((id) => <PinnedDashboard key={id} id={id} />);
}

function PinnedDashboard({ id }: { readonly id: string }) {
  const path = `dashboards/${encodeURIComponent(id)}`;
  const { data, error, retry } = useLoad(path, (signal) => getJson<Dashboard>(path, signal), READ_EVERY_MS);
  const { data: saved } = useLoad('views', (signal) => getAll<'views', View>('views', signal), READ_EVERY_MS);
  // It was deleted, or is of another workspace.
  if (error && isRefused(error)) return null;
  if (error) return <Problem error={error} onRetry={retry} />;
  if (!data) return null;
  const { name, tiles } = data;
  return (
    <section aria-labelledby={`pinned-${id}`}>
      <h2 id={`pinned-${id}`}>
        <a href={hrefOf(['dashboards', id])}>
          <bdi>{name}</bdi>
        </a>
      </h2>
      {tiles.length === 0 && <p class="muted">There is nothing on this dashboard yet.</p>}
      <Tiles
        {...{ dashboard: id, tiles, stored: tiles, views: saved?.views ?? [], isEdited: false, range: '' }}
        onChange={() => undefined}
      />
    </section>
  );
}

/** A dashboard that a read-only link has opened: its numbers alone, which stay those of now. */
export function WallPage({ link }: { readonly link: Link }) {
  const { dashboard, key } = link;
  const path = `dashboards/${encodeURIComponent(dashboard)}`;
  const read: Read = (path, signal) => request(path, { signal }, key);
  const { data, error } = useLoad(path, (signal) => getRecords<Dashboard>(path, signal, key), READ_EVERY_MS);
  const refused = error !== undefined && isRefused(error);
  // Somebody may have made it up, for a dashboard that the console of this tab can show.
  useEffect(() => {
    if (refused) forgetLink();
  }, [refused]);
  useEffect(() => {
    document.title = `${data?.name ?? 'Dashboard'} · Sluice`;
  }, [data?.name]);
  return (
    <main id="main" class="wall">
      <h1>
        <bdi>{data?.name ?? 'Dashboard'}</bdi>
      </h1>
      {error && <Problem error={refused ? new Error('This link was revoked, or its dashboard deleted.') : error} />}
      {refused && (
        <p>
          <button type="button" onClick={() => location.reload()}>
            Open it in the console
          </button>
        </p>
      )}
      {!data && !error && <p role="status">Loading …</p>}
      {data?.tiles.length === 0 && <p class="muted">There is nothing on this dashboard yet.</p>}
      {data && (
        <div class="tiles" style={{ '--columns': columnsOf(data.tiles) }}>
          {data.tiles.map((tile, index) => (
            <section key={keysOf(data.tiles)[index]} class={`tile width-${tile.width}`} aria-label={nameOfTile(tile)}>
              <Tile {...{ dashboard, tile, read, range: rangeNow() }} params={undefined} />
            </section>
          ))}
        </div>
      )}
    </main>
  );
}

function isRefused(error: Error): boolean {
  return error instanceof ApiError && (error.status === 401 || error.status === 404);
}

/** How much wider than high a tile of a wall is to be, on a screen of 16 to 9. */
const TILE_SHAPE = 1.6;

/** Returns in how many columns tiles fill a screen. */
function columnsOf(tiles: Dashboard['tiles']): number {
  const cells = tiles.reduce((sum, { width }) => sum + width, 0);
  const widest = Math.max(1, ...tiles.map(({ width }) => width));
  return Math.max(widest, Math.round(Math.sqrt((cells * 16) / (9 * TILE_SHAPE))));
}
