import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { request, type View, without } from '../base/base.ts';
import { paramsOfView } from '../explore/explore.ts';
import { keysOf, nameOfTile, type Read, Tile, type TileOf } from './tile.tsx';

interface TilesProps {
  readonly dashboard: string;
  readonly tiles: readonly TileOf[];
  /** Those that are stored; of any other one there are no numbers yet. */
  readonly stored: readonly TileOf[];
  /** The saved views. */
  readonly views: readonly View[];
  /** Whether they can be changed now. */
  readonly isEdited: boolean;
  /** The range of all tiles; empty: each has its own. */
  readonly range: string;
  readonly onChange: (tiles: readonly TileOf[]) => void;
}

const read: Read = (path, signal) => request(path, { signal });

/** The tiles of a dashboard. They can be moved by dragging or by buttons, made wide, and removed; what happened is announced. */
export function Tiles({ dashboard, tiles, stored, views, isEdited, range, onChange }: TilesProps) {
  const [said, setSaid] = useState('');
  const [dragged, setDragged] = useState<string>();
  const place = useRef<HTMLDivElement>(null);
  const focused = useRef<HTMLElement>(null);
  // An element that was moved has lost the focus, and one that was removed is gone.
  useLayoutEffect(() => {
    focused.current?.focus();
    focused.current = null;
  }, [tiles]);
  const keys = keysOf(tiles);
  const paramsOf = ({ view }: TileOf) => {
    const found = views.find(({ id }) => id === view);
    return found && inRange(paramsOfView(found), found.report === 'sql' ? '' : range);
  };
  const move = (from: number, to: number) => {
    const tile = tiles[from];
    if (!tile) return;
    if (to < 0 || to >= tiles.length) {
      setSaid(`${nameOfTile(tile)} is ${to < 0 ? 'the first' : 'the last'} already.`);
      return;
    }
    focused.current = document.activeElement as HTMLElement;
    onChange(reordered(tiles, from, to));
    setSaid(`${nameOfTile(tile)} is now ${to + 1} of ${tiles.length}.`);
  };
  const widen = (tile: TileOf) => {
    const width = tile.width === 1 ? 2 : 1;
    onChange(tiles.map((other) => (other === tile ? { ...tile, width } : other)));
    setSaid(`${nameOfTile(tile)} is now ${width === 1 ? 'narrow' : 'wide'}.`);
  };
  const remove = (tile: TileOf) => {
    focused.current = place.current;
    onChange(tiles.filter((other) => other !== tile));
    setSaid(`${nameOfTile(tile)} is removed.`);
  };
  return (
    <>
      {isEdited && (
        <p role="status" class="muted">
          {said}
        </p>
      )}
      <div class="tiles" tabIndex={-1} ref={place}>
        {tiles.map((tile, index) => (
          <section
            key={keys[index]}
            class={`tile width-${tile.width}${dragged === keys[index] ? ' dragged' : ''}`}
            aria-label={nameOfTile(tile)}
            draggable={isEdited}
            onDragStart={(event) => {
              event.dataTransfer?.setData('text/plain', nameOfTile(tile));
              setDragged(keys[index]);
            }}
            onDragEnd={() => setDragged(undefined)}
            onDragOver={(event) => {
              if (dragged !== undefined) event.preventDefault();
            }}
            onDrop={(event) => {
              event.preventDefault();
              const from = keys.indexOf(dragged ?? '');
              if (from !== -1 && from !== index) move(from, index);
            }}
          >
            <Tile
              {...{ dashboard, tile, read, range, params: paramsOf(tile) }}
              isStored={stored.some(({ view }) => view === tile.view)}
            >
              {isEdited && (
                <TileButtons
                  name={nameOfTile(tile)}
                  width={tile.width}
                  onMove={(by) => move(index, index + by)}
                  onWiden={() => widen(tile)}
                  onRemove={() => remove(tile)}
                />
              )}
            </Tile>
          </section>
        ))}
      </div>
    </>
  );
}

/** Returns the parameters of a page with the range of a dashboard. */
function inRange(params: URLSearchParams, range: string): URLSearchParams {
  if (range === '') return params;
  const others = without(params, 'startDate', 'endDate', ...(params.get('interval') === 'none' ? [] : ['interval']));
  others.set('range', range);
  return others;
}

interface TileButtonsProps {
  readonly name: string;
  readonly width: number;
  /** Moves the tile by so many places. */
  readonly onMove: (by: 1 | -1) => void;
  readonly onWiden: () => void;
  readonly onRemove: () => void;
}

function TileButtons({ name, width, onMove, onWiden, onRemove }: TileButtonsProps) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset would be for fields of a form
    <div class="row-actions" role="group" aria-label={`Change ${name}`}>
      <button type="button" onClick={() => onMove(-1)}>
        Move earlier
      </button>
      <button type="button" onClick={() => onMove(1)}>
        Move later
      </button>
      <button type="button" onClick={onWiden}>
        {width === 1 ? 'Make wide' : 'Make narrow'}
      </button>
      <button type="button" onClick={onRemove}>
        Remove
      </button>
    </div>
  );
}

/** Returns a copy of a list in which an item has another place. */
export function reordered<Item>(items: readonly Item[], from: number, to: number): readonly Item[] {
  const [item] = items.slice(from, from + 1);
  return item === undefined ? items : items.toSpliced(from, 1).toSpliced(to, 0, item);
}
