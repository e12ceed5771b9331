import { useState } from 'preact/hooks';
import {
  type DeadLetterWithRow,
  formatBytes,
  formatNumber,
  getJson,
  hrefOf,
  parseRecords,
  request,
  sendJson,
} from '../base/base.ts';
import { ConfirmButton, LoadState, Problem, Snippet, Time, useAction, useLoad } from '../parts/parts.ts';
import { KINDS } from './dead-letters-page.tsx';

/** A dead letter: why it is one, where it came from, its row, and what can be done with it. */
export function DeadLetterPage({ id }: { readonly id: string }) {
  const path = `dead-letters/${encodeURIComponent(id)}`;
  const { count, outcome, failure, act } = useAction();
  const loaded = useLoad(`${path} ${count}`, (signal) => getJson<DeadLetterWithRow>(path, signal));
  const { data } = loaded;
  const replay = (call?: string) =>
    act(async () => {
      await (call === undefined
        ? request(`${path}/replay`, { method: 'POST' })
        : sendJson(`${path}/replay`, 'POST', { call }));
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
          <Content {...data} onSend={(call) => void replay(call)} />
        </>
      )}
    </>
  );
}

/** The members of the row of a rejected call that are shown. */
interface RejectedCall {
  /** The text of the call. */
  readonly call: string;
  /** Whether it is only the beginning of the call. */
  readonly cut?: boolean;
}

/** What a dead letter holds, as JSON where it is some, and as it came; a call can be changed and sent. */
function Content({ kind, row, onSend }: DeadLetterWithRow & { readonly onSend: (call: string) => void }) {
  const parsed = parsedOf(row);
  const rejected = kind === 'rejected' && isRejectedCall(parsed) ? parsed : undefined;
  return (
    <>
      {rejected && <CallForm {...rejected} onSend={onSend} />}
      {!rejected && parsed !== undefined && <Snippet title="Content" text={JSON.stringify(parsed, null, 2)} />}
      <details>
        <summary>As it came</summary>
        <Snippet title="Row" text={row} />
      </details>
    </>
  );
}

function isRejectedCall(value: unknown): value is RejectedCall {
  return typeof Object(value).call === 'string';
}

/** Returns what a text is as JSON; `undefined` when it is none. */
function parsedOf(text: string): unknown {
  try {
    return parseRecords(text);
  } catch {
    return undefined;
  }
}

/** A rejected call, to be changed and sent. Of one that is cut off, somebody has to know the rest. */
function CallForm({ call, cut = false, onSend }: RejectedCall & { readonly onSend: (call: string) => void }) {
  const [text, setText] = useState(() => {
    const parsed = cut ? undefined : parsedOf(call);
    return parsed === undefined ? call : JSON.stringify(parsed, null, 2);
  });
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    onSend(text);
  };
  return (
    <form class="filters" aria-label="Edit and send again" onSubmit={submit}>
      <label class="statement">
        {cut ? 'The beginning of the call: the rest was not kept' : 'The call'}
        <textarea
          required
          spellcheck={false}
          rows={Math.min(24, text.split('\n').length + 1)}
          value={text}
          onInput={({ currentTarget }) => setText(currentTarget.value)}
        />
      </label>
      <div class="actions">
        <button type="submit" class="primary">
          Send this call
        </button>
        <span class="muted">It is stored as if it had come then. The key needs the scope ingest as well.</span>
      </div>
    </form>
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
