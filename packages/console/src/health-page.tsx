import { useRef } from 'preact/hooks';
import { getJson, type Pipeline } from './api.ts';
import { formatNumber } from './format.ts';
import { Problem } from './problem.tsx';
import { Time } from './time.tsx';
import { useLoad } from './use-load.ts';

const READ_EVERY_MS = 10_000;

interface Reading {
  readonly at: number;
  readonly pipeline: Pipeline;
  /** Events accepted a second since the reading before; `null` when that cannot be said. */
  readonly rate: number | null;
}

/** What the pipeline has accepted, what it has not stored yet, and what it could not store. */
export function HealthPage() {
  const last = useRef<Reading | undefined>(undefined);
  const read = async (signal: AbortSignal) => {
    const pipeline = await getJson<Pipeline>('pipeline', signal);
    const at = Date.now();
    last.current = { at, pipeline, rate: rateOf(at, pipeline, last.current) };
    return last.current;
  };
  const { data, error } = useLoad<Reading>('pipeline', read, READ_EVERY_MS);
  return (
    <>
      <h1>Pipeline</h1>
      {error && <Problem error={error} />}
      {data && (
        <>
          <p class="muted">
            Read at <Time value={new Date(data.at).toISOString()} />, and again every {READ_EVERY_MS / 1_000} seconds.
          </p>
          <Figures {...data.pipeline} rate={data.rate} />
          {data.pipeline.missing.map((sentence) => (
            <p key={sentence} class="notice">
              {sentence}
            </p>
          ))}
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

function Figures({ accepted, lag, deadLetters, rate }: Pipeline & { readonly rate: number | null }) {
  return (
    <dl class="figures">
      <Figure term="Accepted" value={accepted?.events ?? null}>
        events of all workspaces since ingest-api started; {formatNumber(rate)} a second since the last reading;{' '}
        {formatNumber(accepted?.rejectedCalls ?? null)} calls rejected
      </Figure>
      <Figure term="Lag" value={lag?.messages ?? null}>
        messages of all workspaces not stored yet, the oldest for {formatNumber(lag?.seconds ?? null)} seconds
      </Figure>
      <Figure term="Dead letters" value={deadLetters.waiting}>
        of this workspace not replayed; {formatNumber(deadLetters.lastDay)} in the last 24 hours
        {deadLetters.newestAt !== null && (
          <>
            , the newest at <Time value={deadLetters.newestAt} />
          </>
        )}
      </Figure>
    </dl>
  );
}

interface FigureProps {
  readonly term: string;
  readonly value: number | null;
  readonly children: preact.ComponentChildren;
}

function Figure({ term, value, children }: FigureProps) {
  return (
    <div>
      <dt>{term}</dt>
      <dd class="figure">{formatNumber(value)}</dd>
      <dd class="muted">{children}</dd>
    </div>
  );
}
