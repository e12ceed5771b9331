import { useEffect } from 'preact/hooks';
import { ApiError, type Dashboard, getRecords } from '../base/base.ts';
import { Problem, useLoad } from '../parts/parts.ts';
import { forgetLink, type Link } from './link.ts';
import { READ_EVERY_MS, type Read, Tile } from './tile.tsx';

/** A dashboard that a read-only link has opened: its numbers alone, which stay those of now. */
export function WallPage({ link }: { readonly link: Link }) {
  const { dashboard, key } = link;
  const path = `dashboards/${encodeURIComponent(dashboard)}`;
  const read: Read = (path, signal) => getRecords(path, signal, key);
  const { data, error } = useLoad(path, (signal) => read<Dashboard>(path, signal), READ_EVERY_MS);
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
        <div class="tiles">
          {data.tiles.map((tile) => (
            <section key={tile.view} class={`tile width-${tile.width}`} aria-labelledby={`tile-${tile.view}`}>
              <Tile {...{ dashboard, tile, read }} params={undefined} />
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
