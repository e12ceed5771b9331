import type { ComponentChildren } from 'preact';
import {
  type Dashboard,
  type EventSeries,
  formatChange,
  formatNumber,
  hrefOf,
  toDouble,
  type View,
} from '../base/base.ts';
import {
  ChartDrawing,
  type DrawingProps,
  eventsHref,
  FunnelDrawing,
  formOf,
  type ReportBody,
  ReportNotes,
  RetentionDrawing,
  ValuesDrawing,
} from '../explore/explore.ts';
import { NumberLink, Problem, useLoad } from '../parts/parts.ts';

/** Numbers are read again so often, in milliseconds. */
export const READ_EVERY_MS = 60_000;

export type TileOf = Dashboard['tiles'][number];

/** Returns JSON, with the key of the person or of the link. */
export type Read = <Body>(path: string, signal: AbortSignal) => Promise<Body>;

interface TileProps {
  readonly dashboard: string;
  readonly tile: TileOf;
  readonly read: Read;
  /** The parameters of the page that shows the view, if it may be opened from here. */
  readonly params: URLSearchParams | undefined;
  /** Whether it can be read. Default: yes. */
  readonly isStored?: boolean;
  /** What can be done with it. */
  readonly children?: ComponentChildren;
}

/** A view on a dashboard, with its numbers of now. */
export function Tile({ dashboard, tile, read, params, isStored = true, children }: TileProps) {
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
      ) : !isStored ? (
        <p class="muted">Saving …</p>
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

interface TileReportProps extends DrawingProps<ReportBody> {
  readonly report: View['report'];
  /** How a series is drawn, if the view says so. */
  readonly form: string | null;
}

/** The numbers of a view, drawn as in Explore. */
function TileReport({ report, form, ...drawing }: TileReportProps) {
  const { response } = drawing;
  switch (report) {
    case 'series':
      return <ChartTile {...drawing} form={form} />;
    case 'funnel':
      return (
        <>
          <ReportNotes {...response} />
          <FunnelDrawing {...drawing} />
        </>
      );
    case 'retention':
      return (
        <>
          <ReportNotes {...response} />
          <RetentionDrawing {...drawing} />
        </>
      );
    case 'values':
      return (
        <>
          <ReportNotes {...response} complete exact />
          <ValuesDrawing {...drawing} />
        </>
      );
  }
}

function ChartTile({ form, ...drawing }: DrawingProps<EventSeries> & Pick<TileReportProps, 'form'>) {
  const { response, params } = drawing;
  const { groupBy, previous } = response;
  const [total, before] = [toDouble(response.total), toDouble(previous?.total ?? null)];
  const isNumber = form === 'number';
  return (
    <>
      {!isNumber && (
        <p class="total">
          <strong>
            <NumberLink value={total} href={eventsHref(params, response)} />
          </strong>
          {previous && ` ${formatChange(total, before)}, before: ${formatNumber(before)}`}
        </p>
      )}
      <ReportNotes {...response} />
      <ChartDrawing {...drawing} form={formOf(form)} hasTotals={!isNumber && groupBy.length > 0} />
    </>
  );
}
