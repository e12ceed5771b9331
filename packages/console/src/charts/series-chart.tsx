import { Ellipsis } from 'lucide';
import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { formatBucket, formatChange, formatNumber } from '../base/base.ts';
import { Icon, saveFile } from '../parts/parts.ts';
import { Legend, Swatch, useHiding } from './legend.tsx';
import type { Plot, Pointed } from './plot.ts';
import type { Drawn, Form } from './plot-series.ts';
import { type Line, readingOf } from './series.ts';

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
  /** Whether there is the picture alone, as on a dashboard. Default: it can be read by keyboard, and saved. */
  readonly isBare?: boolean;
  /** What it shows, for those who do not see it, and the title of its picture. */
  readonly label: string;
  /** Returns the address of what is behind a bucket. Default: there is none. */
  readonly hrefOf?: (index: number) => string;
  /** Shows only some buckets. Default: it cannot be zoomed. */
  readonly onZoom?: (first: number, last: number) => void;
  /** The table of its numbers. */
  readonly children?: ComponentChildren;
}

/** A screen reader reads the numbers of so many lines at once; the table has all. */
const SPOKEN_MAX = 10;

const NOTHING: readonly number[] = [];
const NONE: ReadonlySet<string> = new Set();

/** Draws lines or bars. A table must have the same numbers: this is a picture, with a slider to read it by keyboard. */
export function SeriesChart(props: SeriesChartProps) {
  const { buckets, interval, timeZone, lines, partial = NONE, form = 'line', markers = NOTHING, label } = props;
  const place = useRef<HTMLDivElement>(null);
  const [pointed, setPointed] = useState<Pointed>();
  const [chosen, setChosen] = useState<number>();
  const names = useMemo(() => lines.map(({ label }) => label), [lines]);
  const hiding = useHiding(names);
  const { hidden } = hiding;
  const drawn: Drawn = { buckets, interval, timeZone, lines, hidden, partial, form, markers };
  const { plot, isMissing } = usePlot(place, drawn, { onPoint: setPointed, onChoose: setChosen, onZoom: props.onZoom });
  const nameOf = (index: number) => nameOfBucket(buckets[index], { interval, timeZone, partial });
  return (
    <figure class="series">
      {lines.length > 1 && (
        <Legend
          {...{ names, ...hiding }}
          label="Lines of the chart"
          onPoint={(index) => void plot.current?.then((drawn) => drawn?.highlight(index))}
        />
      )}
      <div class="plot">
        <div class="chart" role="img" aria-label={label} ref={place} />
        {pointed && <Tip {...{ lines, hidden, pointed }} name={nameOf(pointed.index)} />}
      </div>
      {isMissing && 'The chart could not be loaded: load the page again. '}
      {!props.isBare && (
        <figcaption>
          {chosen !== undefined && chosen < buckets.length && (
            <Reading {...props} name={nameOf(chosen)} index={chosen} hidden={hidden} />
          )}
          <details class="more">
            <summary title="Read by keyboard, save, all numbers">
              <Icon of={Ellipsis} />
              <span class="hidden">More of the chart</span>
            </summary>
            <Slider
              max={buckets.length - 1}
              value={chosen}
              textOf={(index) => `${nameOf(index)}: ${textOf(readingOf(lines, hidden, index).slice(0, SPOKEN_MAX))}`}
              onChoose={(index) => {
                setChosen(index);
                void plot.current?.then((drawn) => drawn?.point(index));
              }}
            />
            <PictureButtons plot={plot} label={label} />
            {props.children}
          </details>
        </figcaption>
      )}
    </figure>
  );
}

interface Naming {
  readonly interval: string;
  readonly timeZone: string;
  readonly partial: ReadonlySet<string>;
}

function nameOfBucket(bucket: string | undefined, { interval, timeZone, partial }: Naming): string {
  if (bucket === undefined) return '';
  return `${formatBucket(bucket, interval, timeZone)}${partial.has(bucket) ? ' (partial)' : ''}`;
}

type Readings = ReturnType<typeof readingOf>;

function textOf(readings: Readings): string {
  return readings.map(({ label, value }) => `${label} ${formatNumber(value)}`).join(', ');
}

/** The box at the pointer has so many lines. */
const TIP_MAX = 12;

interface TipProps {
  readonly name: string;
  readonly lines: readonly Line[];
  readonly hidden: ReadonlySet<number>;
  readonly pointed: Pointed;
}

/** The numbers of the time that is pointed at, beside the pointer. The slider reads them to those who do not see it. */
function Tip({ name, lines, hidden, pointed: { index, left, isRight } }: TipProps) {
  const readings = readingOf(lines, hidden, index);
  const isCompared = readings.some(({ before }) => before !== null);
  return (
    <div class={isRight ? 'tip right' : 'tip'} style={{ left: `${left}px` }} aria-hidden="true">
      <strong>{name}</strong>
      <table>
        <tbody>
          {readings.slice(0, TIP_MAX).map(({ index, label, value, before }) => (
            <tr key={index}>
              <td>
                <Swatch index={index} />
                <bdi>{label}</bdi>
              </td>
              <td class="number">{formatNumber(value)}</td>
              {isCompared && (
                <>
                  <td class="number muted">{formatNumber(before)}</td>
                  <td class="number muted">{formatChange(value, before)}</td>
                </>
              )}
            </tr>
          ))}
        </tbody>
      </table>
      {readings.length > TIP_MAX && <span class="muted">and {readings.length - TIP_MAX} more</span>}
    </div>
  );
}

interface ReadingProps extends SeriesChartProps {
  readonly name: string;
  readonly index: number;
  readonly hidden: ReadonlySet<number>;
}

/** The numbers of the bucket that was chosen, and what can be done with it. */
function Reading({ name, index, lines, hidden, interval, hrefOf, onZoom }: ReadingProps) {
  return (
    <p>
      <strong>{name}:</strong> {textOf(readingOf(lines, hidden, index))}{' '}
      {hrefOf && <a href={hrefOf(index)}>Events of this {interval}</a>}{' '}
      {onZoom && interval !== 'minute' && (
        <button type="button" onClick={() => onZoom(index, index)}>
          Zoom in on this {interval}
        </button>
      )}
    </p>
  );
}

interface SliderProps {
  readonly max: number;
  readonly value: number | undefined;
  /** Returns what is read at a place. */
  readonly textOf: (index: number) => string;
  readonly onChoose: (index: number) => void;
}

function Slider({ max, value, textOf, onChoose }: SliderProps) {
  return (
    <label class="reader">
      Read a time{' '}
      <input
        type="range"
        min={0}
        max={max}
        value={value ?? max}
        aria-valuetext={value === undefined ? 'none' : textOf(value)}
        onInput={({ currentTarget }) => onChoose(currentTarget.valueAsNumber)}
      />
    </label>
  );
}

interface Listeners {
  readonly onPoint: (pointed: Pointed | undefined) => void;
  readonly onChoose: (index: number | undefined) => void;
  readonly onZoom: SeriesChartProps['onZoom'];
}

/** Draws into a place while it is shown. */
function usePlot(place: { readonly current: HTMLDivElement | null }, drawn: Drawn, listeners: Listeners) {
  const plot = useRef<Promise<Plot | undefined>>(undefined);
  const [isMissing, setIsMissing] = useState(false);
  const { buckets, lines, hidden, interval, timeZone, partial, form, markers } = drawn;
  // What was chosen of other numbers is gone; of the same ones, it stays while lines are hidden.
  useLayoutEffect(() => listeners.onChoose(undefined), [buckets, lines, interval, timeZone]);
  // At once: until a later effect, the chart of the numbers before would be under new ones.
  useLayoutEffect(() => {
    const element = place.current;
    if (!element) return;
    listeners.onPoint(undefined);
    let isGone = false;
    let own: Plot | undefined;
    // Loaded with the first chart: it is as large as the rest of the console.
    plot.current = import('./plot.ts').then(
      ({ drawPlot }) => {
        if (!isGone) own = drawPlot(element, drawn, listeners);
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
  }, [buckets, lines, hidden, interval, timeZone, partial, form, markers]);
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
