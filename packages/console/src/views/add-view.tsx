import { useId, useRef } from 'preact/hooks';
import { getAll, hrefOf, type View } from '../base/base.ts';
import { LoadState, useLoad } from '../parts/parts.ts';
import type { TileOf } from './tile.tsx';

interface AddViewProps {
  readonly tiles: readonly TileOf[];
  readonly onAdd: (tile: TileOf) => void;
}

/** Chooses one of the views that a dashboard does not have. */
export function AddView({ tiles, onAdd }: AddViewProps) {
  const id = useId();
  const select = useRef<HTMLSelectElement>(null);
  const loaded = useLoad('views', (signal) => getAll<'views', View>('views', signal));
  const { data } = loaded;
  if (!data) return <LoadState loaded={loaded} />;
  const others = data.views.filter((view) => !tiles.some((tile) => tile.view === view.id));
  if (others.length === 0) {
    return (
      <p>
        {data.views.length === 0 ? 'There are no saved views yet.' : 'All saved views are on this dashboard.'}{' '}
        <a href={hrefOf(['explore'])}>Explore</a> the events, and save what you want to see here.
      </p>
    );
  }
  const add = (event: SubmitEvent) => {
    event.preventDefault();
    const view = others.find((view) => view.id === select.current?.value);
    if (!view) return;
    const form = view.parameters['form'] ?? null;
    onAdd({ view: view.id, width: 1, name: view.name, report: view.report, form });
  };
  return (
    <form class="name-form" onSubmit={add}>
      <label for={id}>View</label>
      <select id={id} ref={select}>
        {others.map((view) => (
          <option key={view.id} value={view.id}>
            {view.name}
          </option>
        ))}
      </select>
      <button type="submit" class="primary">
        Add it
      </button>
    </form>
  );
}
