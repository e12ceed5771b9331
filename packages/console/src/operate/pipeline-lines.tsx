import { useMemo } from 'preact/hooks';
import { getJson, type PipelineHistory, timeZone } from '../base/base.ts';
import { Legend, type Line, SeriesChart, SeriesTable } from '../charts/charts.ts';
import { LoadState, useLoad } from '../parts/parts.ts';

type Sample = PipelineHistory['samples'][number];

const READ_EVERY_MS = 60_000;

/** What is drawn together: with one unit each. */
const CHARTS: readonly { readonly label: string; readonly lines: readonly (readonly [keyof Sample, string])[] }[] = [
  {
    label: 'Accepted and stored',
    lines: [
      ['acceptedPerSecond', 'Accepted events a second'],
      ['storedPerSecond', 'Stored messages a second'],
    ],
  },
  {
    label: 'Lag and halts',
    lines: [
      ['lagSeconds', 'Lag in seconds'],
      ['haltedPartitions', 'Halted partitions'],
    ],
  },
];

/** The pipeline over the last hour, as lines. */
export function PipelineLines() {
  const loaded = useLoad(
    'pipeline history',
    (signal) => getJson<PipelineHistory>('pipeline/history', signal),
    READ_EVERY_MS,
  );
  const { data } = loaded;
  const samples = data?.samples ?? [];
  return (
    <>
      <h2>The last hour</h2>
      <LoadState loaded={loaded} />
      {data && samples.length < 2 && (
        <p class="muted">query-api looks once a minute since it started: lines are here in two minutes.</p>
      )}
      {samples.length >= 2 && <Charts samples={samples} />}
    </>
  );
}

function Charts({ samples }: { readonly samples: readonly Sample[] }) {
  // The page is rendered more often than there are samples, and a chart is drawn anew for other lines.
  const charts = useMemo(() => {
    const common = { buckets: samples.map(({ at }) => at), interval: 'minute', timeZone: timeZone.value };
    return CHARTS.map(({ label, lines }) => ({
      label,
      props: { ...common, lines: lines.map(([name, title]) => lineOf(title, samples, name)) },
    }));
  }, [samples, timeZone.value]);
  return charts.map(({ label, props }) => (
    <section key={label} aria-label={label}>
      <h3>{label}</h3>
      <Legend lines={props.lines} />
      <SeriesChart {...props} label={`${label}, of all workspaces, each minute of the last hour`} />
      <SeriesTable {...props} />
    </section>
  ));
}

function lineOf(label: string, samples: readonly Sample[], name: keyof Sample): Line {
  const values = samples.map((sample) => sample[name] as number | null);
  return { label, total: null, values, previous: undefined };
}
