import { useId, useRef, useState } from 'preact/hooks';
import { type Dashboard, getAll, getJson, hrefOf, sendJson, type View } from '../base/base.ts';
import { LoadState, useLoad } from '../parts/parts.ts';
import type { TileOf } from './tile.tsx';

/** A change of a dashboard: what is missing stays as it is. */
interface Change {
  readonly name?: string;
  readonly tiles?: Readonly<Dashboard['tiles']>;
}

/**
 * Holds a dashboard whose changes are shown at once and then stored, one after the other. After one that could not be stored,
 * what is stored is shown. `stored` has the tiles whose numbers can be read.
 */
export function useSaved(path: string, loaded: Dashboard) {
  const [dashboard, setDashboard] = useState(loaded);
  const [stored, setStored] = useState(loaded.tiles);
  const [failure, setFailure] = useState<Error>();
  const [waiting, setWaiting] = useState(0);
  const last = useRef<Promise<void>>(Promise.resolve());
  const store = async ({ tiles, ...rest }: Change) => {
    const body = {
      ...rest,
      ...(tiles && {
        tiles: tiles.map(({ view, note, width }) => (view === null ? { note, width } : { view, width })),
      }),
    };
    try {
      await sendJson(path, 'PATCH', body);
      if (tiles) setStored([...tiles]);
    } catch (error) {
      setFailure(error as Error);
      const found = await getJson<Dashboard>(path, new AbortController().signal).catch(() => loaded);
      setDashboard(found);
      setStored(found.tiles);
    }
  };
  const change = (given: Change) => {
    setFailure(undefined);
    setDashboard(({ name, tiles, ...rest }) => ({
      ...rest,
      name: given.name ?? name,
      tiles: [...(given.tiles ?? tiles)],
    }));
    setWaiting((count) => count + 1);
    last.current = last.current.then(() => store(given)).finally(() => setWaiting((count) => count - 1));
  };
  return { dashboard, stored, change, failure, isSaving: waiting > 0 };
}

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
    onAdd({ view: view.id, note: null, width: 1, name: view.name, report: view.report, form });
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

/** Characters of a note at most. */
const NOTE_MAX = 2_000;

/** Writes a text to stand among the tiles. */
export function AddNote({ onAdd }: Pick<AddViewProps, 'onAdd'>) {
  const id = useId();
  const text = useRef<HTMLTextAreaElement>(null);
  const add = (event: SubmitEvent) => {
    event.preventDefault();
    const note = text.current?.value.trim() ?? '';
    if (note === '' || !text.current) return;
    onAdd({ view: null, note, width: 1, name: null, report: null, form: null });
    text.current.value = '';
  };
  return (
    <form class="name-form" onSubmit={add}>
      <label for={id}>Note</label>
      <textarea id={id} ref={text} rows={2} cols={40} maxLength={NOTE_MAX} dir="auto" required />
      <button type="submit">Add the note</button>
    </form>
  );
}
