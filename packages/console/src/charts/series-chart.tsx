import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { formatBucket, formatNumber } from '../base/base.ts';
import { saveFile } from '../parts/parts.ts';
import type { Plot } from './plot.ts';
import type { Drawn, Form } from './plot-series.ts';
import type { Line } from './series.ts';

interface SeriesChartProps {
  /** When each bucket begins. */
  readonly buckets: readonly string[];
  readonly interval: string;
  readonly timeZone: string;
  readonly lines: readonly Line[];
  /** The buckets that are only partly in the range. Default: none. */
  readonly partial?: ReadonlySet<string>;
  /** How the numbers are drawn. Default: as lines. */
  readonly form?: Form;
  /** Times to mark, in milliseconds since 1970. Default: none. */
  readonly markers?: readonly number[];
  /** What it shows, for those who do not see it, and the title of its picture. */
  readonly label: string;
  /** Returns the address of what is behind a bucket. Default: there is none. */
  readonly hrefOf?: (index: number) => string;
  /** Shows only some buckets. Default: it cannot be zoomed. */
  readonly onZoom?: (first: number, last: number) => void;
}

/** A screen reader reads the numbers of so many lines at once; the table has all. */
const SPOKEN_MAX = 10;

const NOTHING: readonly number[] = [];
const NONE: ReadonlySet<string> = new Set();

/** Draws lines or bars. A table must have the same numbers: this is a picture, with a slider to read it by keyboard. */
export function SeriesChart(props: SeriesChartProps) {
  const { buckets, interval, timeZone, lines, partial = NONE, form = 'line', markers = NOTHING, label } = props;
  const place = useRef<HTMLDivElement>(null);
  const [pointed, setPointed] = useState<number>();
  const drawn: Drawn = { buckets, interval, timeZone, lines, partial, form, markers };
  const { plot, isMissing } = usePlot(place, drawn, setPointed, props.onZoom);
  const bucket = pointed === undefined ? undefined : buckets[pointed];
  const name = bucket && `${formatBucket(bucket, interval, timeZone)}${partial.has(bucket) ? ' (partial)' : ''}`;
  return (
    <figure>
      <div class="chart" role="img" aria-label={label} ref={place} />
      <figcaption>
        {isMissing && 'The chart could not be loaded: load the page again. '}
        <label class="reader">
          Read a time{' '}
          <input
            type="range"
            min={0}
            max={buckets.length - 1}
            value={pointed ?? buckets.length - 1}
            aria-valuetext={
              name === undefined || pointed === undefined
                ? 'none'
                : `${name}: ${readingOf(lines.slice(0, SPOKEN_MAX), pointed)}`
            }
            onInput={({ currentTarget }) => {
              setPointed(currentTarget.valueAsNumber);
              void plot.current?.then((drawn) => drawn?.point(currentTarget.valueAsNumber));
            }}
          />
        </label>
        {name === undefined || pointed === undefined ? (
          <p>Point at the chart or move the slider to read a time; the table below has all numbers.</p>
        ) : (
          <Reading {...props} name={name} index={pointed} />
        )}
        <PictureButtons plot={plot} label={label} />
      </figcaption>
    </figure>
  );
}

interface ReadingProps extends SeriesChartProps {
  readonly name: string;
  readonly index: number;
}

/** The numbers of one bucket. */
function Reading({ name, index, lines, interval, hrefOf, onZoom }: ReadingProps) {
  return (
    <p>
      <strong>{name}:</strong> {readingOf(lines, index)}{' '}
      {hrefOf && <a href={hrefOf(index)}>Events of this {interval}</a>}{' '}
      {onZoom && interval !== 'minute' && (
        <button type="button" onClick={() => onZoom(index, index)}>
          Zoom in on this {interval}
        </button>
      )}
    </p>
  );
}

function readingOf(lines: readonly Line[], index: number): string {
  return lines.map(({ label, values }) => `${label} ${formatNumber(values[index] ?? null)}`).join(', ');
}

/** Draws into a place while it is shown. */
function usePlot(
  place: { readonly current: HTMLDivElement | null },
  drawn: Drawn,
  onPoint: (index: number | undefined) => void,
  onZoom: SeriesChartProps['onZoom'],
) {
  const plot = useRef<Promise<Plot | undefined>>(undefined);
  const [isMissing, setIsMissing] = useState(false);
  const { buckets, lines, interval, timeZone, partial, form, markers } = drawn;
  // At once: until a later effect, the chart of the numbers before would be under new ones.
  useLayoutEffect(() => {
    const element = place.current;
    if (!element) return;
    onPoint(undefined);
    let isGone = false;
    let own: Plot | undefined;
    // Loaded with the first chart: it is as large as the rest of the console.
    plot.current = import('./plot.ts').then(
      ({ drawPlot }) => {
        if (!isGone) own = drawPlot(element, drawn, { onPoint, onZoom });
        return own;
      },
      // Another version was installed meanwhile, or query-api is away.
      () => {
        setIsMissing(true);
        return undefined;
      },
    );
    return () => {
      isGone = true;
      own?.remove();
    };
  }, [buckets, lines, interval, timeZone, partial, form, markers]);
  return { plot, isMissing };
}

interface PictureButtonsProps {
  /** What is drawn, or will be in a moment. */
  readonly plot: { readonly current: Promise<Plot | undefined> | undefined };
  readonly label: string;
}

function PictureButtons({ plot, label }: PictureButtonsProps) {
  const [error, setError] = useState('');
  const save = async (format: 'png' | 'svg') => {
    try {
      const drawn = await plot.current;
      const picture = await (format === 'png' ? drawn?.toPng(label) : drawn?.toSvg(label));
      if (picture) saveFile(`chart.${format}`, picture);
    } catch (caught) {
      setError((caught as Error).message);
    }
  };
  return (
    <p>
      <button type="button" onClick={() => void save('png')}>
        Save as PNG
      </button>{' '}
      <button type="button" onClick={() => void save('svg')}>
        Save as SVG
      </button>{' '}
      {error}
    </p>
  );
}
