import type { ComponentChildren } from 'preact';
import type { Dashboard } from '../api.ts';
import { Problem } from '../problem.tsx';
import { useLoad } from '../use-load.ts';
import { type Numbers, ReportNumbers } from './report-numbers.tsx';

/** Numbers are read again so often, in milliseconds. */
export const READ_EVERY_MS = 60_000;

export type TileOf = Dashboard['tiles'][number];

/** Returns JSON, with the key of the person or of the link. */
export type Read = <Body>(path: string, signal: AbortSignal) => Promise<Body>;

interface TileProps {
  readonly dashboard: string;
  readonly tile: TileOf;
  readonly read: Read;
  /** What can be done with it. */
  readonly children?: ComponentChildren;
}

/** A view on a dashboard, with its numbers of now. */
export function Tile({ dashboard, tile, read, children }: TileProps) {
  const { view, name, report } = tile;
  const title = name ?? 'A deleted view';
  return (
    <>
      <h2 id={`tile-${view}`}>
        <bdi>{title}</bdi>
      </h2>
      {children}
      {report === null ? (
        <p class="muted">The view of this tile was deleted.</p>
      ) : (
        <TileNumbers {...{ dashboard, view, report, read }} form={tile.form} name={title} />
      )}
    </>
  );
}

interface TileNumbersProps {
  readonly dashboard: string;
  readonly view: string;
  readonly report: NonNullable<TileOf['report']>;
  readonly form: string | null;
  readonly name: string;
  readonly read: Read;
}

function TileNumbers({ dashboard, view, report, form, name, read }: TileNumbersProps) {
  const path = `dashboards/${encodeURIComponent(dashboard)}/tiles/${view}`;
  const { data, error } = useLoad(path, (signal) => read<Numbers>(path, signal), READ_EVERY_MS);
  if (error) return <Problem error={error} />;
  if (!data) return <p class="muted">Loading …</p>;
  return <ReportNumbers {...{ report, form, name }} numbers={data} />;
}
