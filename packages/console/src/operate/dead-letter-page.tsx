import { type DeadLetterWithRow, formatBytes, formatNumber, getJson, hrefOf, request } from '../base/base.ts';
import { ConfirmButton, LoadState, Problem, Snippet, Time, useAction, useLoad } from '../parts/parts.ts';
import { KINDS } from './dead-letters-page.tsx';

/** A dead letter: why it is one, where it came from, its row, and what can be done with it. */
export function DeadLetterPage({ id }: { readonly id: string }) {
  const path = `dead-letters/${encodeURIComponent(id)}`;
  const { count, outcome, failure, act } = useAction();
  const loaded = useLoad(`${path} ${count}`, (signal) => getJson<DeadLetterWithRow>(path, signal));
  const { data } = loaded;
  const replay = () =>
    act(async () => {
      await request(`${path}/replay`, { method: 'POST' });
      return 'It is replayed: the writer stores it within seconds. If it fails again, it waits here again.';
    });
  return (
    <>
      <p>
        <a href={hrefOf(['dead-letters'])}>Dead letters</a>
      </p>
      <h1>Dead letter {id}</h1>
      <LoadState loaded={loaded} scope="admin" />
      {failure && <Problem error={failure} />}
      {data && (
        <>
          <div class="bar">
            <ConfirmButton
              label="Replay"
              question="Its row is sent through Kafka again, and stored unless it is stored already."
              confirm="Replay it"
              onConfirm={() => void replay()}
            />
            <p role="status">{outcome}</p>
          </div>
          <Description {...data} />
          <Snippet title="Row" text={data.row} />
        </>
      )}
    </>
  );
}

function Description({ kind, client, reason, recordedAt, replayedAt, bytes, ...source }: DeadLetterWithRow) {
  const { topic, partition, offset, line } = source;
  return (
    <dl class="description">
      <dt>Reason</dt>
      <dd class="verbatim">{reason}</dd>
      <dt>Kind</dt>
      <dd>
        {KINDS[kind] ?? kind}
        {client !== null && ` of ${client}`}
      </dd>
      <dt>Recorded</dt>
      <dd>
        <Time value={recordedAt} full />
      </dd>
      <dt>Replayed</dt>
      <dd>{replayedAt === null ? 'not since it failed' : <Time value={replayedAt} />}</dd>
      <dt>Source</dt>
      <dd>
        topic {topic}, partition {formatNumber(partition)}, offset {offset}, row {formatNumber(line + 1)} of the message
      </dd>
      <dt>Size</dt>
      <dd>{formatBytes(bytes)}</dd>
    </dl>
  );
}
