import { useMemo, useRef } from 'preact/hooks';
import { type Audits, getJson, type Pipeline, type PipelineHistory, timeZone } from '../base/base.ts';
import { type Line, SeriesChart, SeriesTable } from '../charts/charts.ts';
import { Command, LoadState, Time, useLoad } from '../parts/parts.ts';
import { type Attention, attentionOf } from './attention.ts';
import { AuditSection } from './audit-section.tsx';
import { auditAttention } from './books.ts';
import { PipelineFigures } from './pipeline-figures.tsx';

const READ_EVERY_MS = 10_000;

/** Audits are made once a day. */
const AUDITS_READ_EVERY_MS = 60_000;

interface Reading {
  readonly at: number;
  readonly pipeline: Pipeline;
  /** Events accepted a second since the reading before; `null` when that cannot be said. */
  readonly rate: number | null;
  readonly attention: readonly Attention[];
}

/** What the pipeline has accepted, what it has not stored yet, what it could not store, and what keeps it from storing. */
export function HealthPage() {
  const last = useRef<Reading | undefined>(undefined);
  const read = async (signal: AbortSignal) => {
    const pipeline = await getJson<Pipeline>('pipeline', signal);
    const at = Date.now();
    const rate = rateOf(at, pipeline, last.current);
    last.current = { at, pipeline, rate, attention: attentionOf(pipeline, last.current?.pipeline) };
    return last.current;
  };
  const loaded = useLoad<Reading>('pipeline', read, READ_EVERY_MS);
  const audits = useLoad('audits', (signal) => getJson<Audits>('audits', signal), AUDITS_READ_EVERY_MS);
  const { data } = loaded;
  return (
    <>
      <h1>Pipeline</h1>
      <LoadState loaded={loaded} />
      {data && (
        <>
          <PipelineVerdict
            attention={[...auditAttention(audits.data), ...data.attention]}
            isWhole={data.pipeline.missing.length === 0}
          />
          <p class="muted">
            Read at <Time value={new Date(data.at).toISOString()} full />, and again every {READ_EVERY_MS / 1_000}{' '}
            seconds.
          </p>
          {data.pipeline.missing.map((sentence) => (
            <p key={sentence} class="notice">
              {sentence}
            </p>
          ))}
          <AuditSection loaded={audits} />
          <PipelineFigures {...data.pipeline} rate={data.rate} />
          {(data.pipeline.accepted || data.pipeline.writers) && <PipelineLines />}
        </>
      )}
    </>
  );
}

function rateOf(at: number, { accepted }: Pipeline, last: Reading | undefined): number | null {
  const before = last?.pipeline.accepted;
  // A service that has started again counts from 0.
  if (!accepted || !before || !last || at <= last.at || accepted.events < before.events) return null;
  return (accepted.events - before.events) / ((at - last.at) / 1_000);
}

interface VerdictProps {
  readonly attention: readonly Attention[];
  /** Whether the state of everything is known. */
  readonly isWhole: boolean;
}

/** Says in a line whether all is well, and below it what to do where it is not. */
function PipelineVerdict({ attention, isWhole }: VerdictProps) {
  if (attention.length === 0) {
    return isWhole ? (
      <p class="verdict good" role="status">
        Everything works. Nothing needs attention.
      </p>
    ) : (
      <p class="verdict" role="status">
        Nothing that is known needs attention; not everything is known.
      </p>
    );
  }
  return (
    <>
      <p class="verdict bad" role="alert">
        {attention.length === 1 ? 'One thing needs attention.' : `${attention.length} things need attention.`}
      </p>
      <ul class="attention">
        {attention.map(({ found, remedy, command }) => (
          <li key={found}>
            <strong>{found}</strong> {remedy}
            {command && <Command text={command} />}
          </li>
        ))}
      </ul>
    </>
  );
}

type Sample = PipelineHistory['samples'][number];

const LINES_READ_EVERY_MS = 60_000;

/** What is drawn, each in a chart of its own: a message holds many events, and on one axis an import would look like a loss. */
const CHARTS: readonly (readonly [name: keyof Sample, label: string])[] = [
  ['acceptedPerSecond', 'Accepted events a second'],
  ['storedPerSecond', 'Stored messages a second'],
  ['lagSeconds', 'Lag in seconds'],
  ['haltedPartitions', 'Halted partitions'],
];

/** The pipeline over the last hour, as lines. */
function PipelineLines() {
  const loaded = useLoad(
    'pipeline history',
    (signal) => getJson<PipelineHistory>('pipeline/history', signal),
    LINES_READ_EVERY_MS,
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
    return CHARTS.map(([name, label]) => ({ label, props: { ...common, lines: [lineOf(label, samples, name)] } }));
  }, [samples, timeZone.value]);
  return charts.map(({ label, props }) => (
    <section key={label} aria-label={label}>
      <h3>{label}</h3>
      <SeriesChart {...props} label={`${label}, of all workspaces, each minute of the last hour`}>
        <SeriesTable {...props} />
      </SeriesChart>
    </section>
  ));
}

function lineOf(label: string, samples: readonly Sample[], name: keyof Sample): Line {
  const values = samples.map((sample) => sample[name] as number | null);
  return { label, total: null, values, previous: undefined };
}
