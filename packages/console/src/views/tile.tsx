import type { ComponentChildren } from 'preact';
import { type Dashboard, hrefOf } from '../base/base.ts';
import type { ReportBody } from '../explore/explore.ts';
import { Problem, useLoad } from '../parts/parts.ts';
import { TileReport } from './tile-report.tsx';

/** Numbers are read again so often, in milliseconds. */
export const READ_EVERY_MS = 60_000;

export type TileOf = Dashboard['tiles'][number];

/** Returns JSON, with the key of the person or of the link. */
export type Read = <Body>(path: string, signal: AbortSignal) => Promise<Body>;

interface TileProps {
  readonly dashboard: string;
  readonly tile: TileOf;
  readonly read: Read;
  /** Those of the page that shows the view, if it may be opened from here. */
  readonly params: URLSearchParams | undefined;
  /** What can be done with it. */
  readonly children?: ComponentChildren;
}

/** A view on a dashboard, with its numbers of now. */
export function Tile({ dashboard, tile, read, params, children }: TileProps) {
  const { view, name, report, form } = tile;
  const title = name ?? 'A deleted view';
  return (
    <>
      <h2 id={`tile-${view}`}>
        {params ? (
          // What is dragged is the tile.
          <a href={hrefOf(['explore'], params)} draggable={false}>
            <bdi>{title}</bdi>
          </a>
        ) : (
          <bdi>{title}</bdi>
        )}
      </h2>
      {children}
      {report === null ? (
        <p class="muted">The view of this tile was deleted.</p>
      ) : (
        <TileNumbers {...{ dashboard, view, report, form, title, read, params }} />
      )}
    </>
  );
}

interface TileNumbersProps extends Pick<TileProps, 'dashboard' | 'read' | 'params'> {
  readonly view: string;
  readonly report: NonNullable<TileOf['report']>;
  readonly form: string | null;
  readonly title: string;
}

function TileNumbers({ dashboard, view, read, ...drawing }: TileNumbersProps) {
  const path = `dashboards/${encodeURIComponent(dashboard)}/tiles/${view}`;
  const { data, error } = useLoad(path, (signal) => read<ReportBody>(path, signal), READ_EVERY_MS);
  if (error) return <Problem error={error} />;
  if (!data) return <p class="muted">Loading …</p>;
  return <TileReport {...drawing} response={data} />;
}
