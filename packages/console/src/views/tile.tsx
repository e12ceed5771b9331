import type { ComponentChildren } from 'preact';
import {
  type Dashboard,
  type EventSeries,
  formatChange,
  formatNumber,
  hrefOf,
  parseRecords,
  toDouble,
  type View,
} from '../base/base.ts';
import {
  ChartDrawing,
  type DrawingProps,
  eventsHref,
  FunnelDrawing,
  formOf,
  pageOfReport,
  type ReportBody,
  ReportNotes,
  RetentionDrawing,
  ValuesDrawing,
} from '../explore/explore.ts';
import { NumberLink, Problem, Scrollable, useLoad } from '../parts/parts.ts';
import { readRows, SqlTile } from '../sql/sql.ts';

/** Numbers are read again so often, in milliseconds. */
export const READ_EVERY_MS = 60_000;

export type TileOf = Dashboard['tiles'][number];

/** Returns what tells tiles of a dashboard apart, which keeps belonging to a tile that is moved. */
export function keysOf(tiles: readonly TileOf[]): string[] {
  const seen = new Map<string, number>();
  return tiles.map(({ view, note }) => {
    const key = view ?? `note ${note}`;
    const count = seen.get(key) ?? 0;
    seen.set(key, count + 1);
    return count === 0 ? key : `${key} ${count}`;
  });
}

/** Returns how a tile is called: as its view, or by the beginning of its note. */
export function nameOfTile({ name, note }: TileOf): string {
  return name ?? note?.slice(0, NOTE_SHOWN_MAX) ?? 'The deleted view';
}

/** The beginning of a note that it is called by, in characters. */
const NOTE_SHOWN_MAX = 40;

/** Sends a GET, with the key of the person or of the link. */
export type Read = (path: string, signal: AbortSignal) => Promise<Response>;

interface TileProps {
  readonly dashboard: string;
  readonly tile: TileOf;
  readonly read: Read;
  /** The range of all tiles; empty: each has its own. */
  readonly range: string;
  /** The parameters of the page that shows the view, if it may be opened from here. */
  readonly params: URLSearchParams | undefined;
  /** Whether it can be read. Default: yes. */
  readonly isStored?: boolean;
  /** What can be done with it. */
  readonly children?: ComponentChildren;
}

/** A view on a dashboard, with its numbers of now. */
export function Tile({ dashboard, tile, read, range, params, isStored = true, children }: TileProps) {
  const { view, note, name, report, form } = tile;
  const title = name ?? 'A deleted view';
  if (view === null) {
    return (
      <>
        {children}
        <div class="tile-body">
          <Scrollable label="Text of the note">
            <p class="note">{note}</p>
          </Scrollable>
        </div>
      </>
    );
  }
  return (
    <>
      <h2 id={`tile-${view}`}>
        {params && report ? (
          // What is dragged is the tile.
          <a href={hrefOf([pageOfReport(report)], params)} draggable={false}>
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
      ) : report === 'sql' ? (
        // Its range is that of the statement.
        <LoadedTile
          key={report}
          {...{ dashboard, view, read, range: '' }}
          parse={async (response) => ({ ...(await readRows(response)), readAt: new Date().toISOString() })}
          draw={(result) => <SqlTile {...result} />}
        />
      ) : (
        <LoadedTile
          key={report}
          {...{ dashboard, view, read, range }}
          parse={reportOf}
          draw={(response) => <TileReport {...{ report, form, title, params, response }} />}
        />
      )}
    </>
  );
}

interface LoadedTileProps<Body> extends Pick<TileProps, 'dashboard' | 'read' | 'range'> {
  readonly view: string;
  /** Reads what the tile shows. */
  readonly parse: (response: Response) => Promise<Body>;
  readonly draw: (body: Body) => ComponentChildren;
}

function LoadedTile<Body>({ dashboard, view, read, range, parse, draw }: LoadedTileProps<Body>) {
  const query = range === '' ? '' : `?${new URLSearchParams({ range })}`;
  const path = `dashboards/${encodeURIComponent(dashboard)}/tiles/${view}${query}`;
  const { data, error } = useLoad(path, async (signal) => parse(await read(path, signal)), READ_EVERY_MS);
  if (error) return <Problem error={error} />;
  if (!data) return <p class="muted">Loading …</p>;
  return <div class="tile-body">{draw(data)}</div>;
}

async function reportOf(response: Response): Promise<ReportBody> {
  return parseRecords(await response.text()) as ReportBody;
}

interface TileReportProps extends DrawingProps<ReportBody> {
  readonly report: Exclude<View['report'], 'sql'>;
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
          <ReportNotes {...response} isShort />
          <FunnelDrawing {...drawing} />
        </>
      );
    case 'retention':
      return (
        <>
          <ReportNotes {...response} isShort />
          <RetentionDrawing {...drawing} />
        </>
      );
    case 'values':
      return (
        <>
          <ReportNotes {...response} complete exact isShort />
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
      <div class="tile-head">
        {!isNumber && (
          <p class="total">
            <strong>
              <NumberLink value={total} href={eventsHref(params, response)} />
            </strong>
            {previous && ` ${formatChange(total, before)}, before: ${formatNumber(before)}`}
          </p>
        )}
        <ReportNotes {...response} isShort />
      </div>
      <ChartDrawing {...drawing} form={formOf(form)} hasTotals={!isNumber && groupBy.length > 0} />
    </>
  );
}
