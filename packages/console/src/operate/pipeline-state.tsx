import { type DeadLetterPage, formatCount, formatDuration, getJson, hrefOf, type Pipeline } from '../base/base.ts';
import { beginningOf, Problem, Time, useLoad } from '../parts/parts.ts';
import { attentionOf } from './attention.ts';

const READ_EVERY_MS = 10_000;

/** The newest rejected calls that are shown. */
const NEWEST = 3;

/** Says in a line whether all that was accepted is stored and what needs attention, and lists the newest rejected calls. */
export function PipelineState() {
  const { data, error } = useLoad('pipeline state', (signal) => getJson<Pipeline>('pipeline', signal), READ_EVERY_MS);
  if (error) return <Problem error={error} />;
  if (!data) return null;
  const attention = attentionOf(data, undefined);
  return (
    <>
      <p class={attention.length > 0 ? 'notice' : 'muted'}>
        {lagOf(data)} {attention.map(({ found }) => found).join(' ')} <a href={hrefOf(['pipeline'])}>Pipeline</a>
      </p>
      {data.deadLetters.rejectedLastDay > 0 && <NewestRejections count={data.deadLetters.rejectedLastDay} />}
    </>
  );
}

/** Which calls were rejected last, of which client and why. A key without the scope `admin` may only know how many. */
function NewestRejections({ count }: { readonly count: number }) {
  const query = `kind=rejected&replayed=false&limit=${NEWEST}`;
  const { data } = useLoad(`${count}`, (signal) => getJson<DeadLetterPage>(`dead-letters?${query}`, signal));
  if (!data || data.results.length === 0) return null;
  return (
    <section aria-labelledby="rejected">
      <h2 id="rejected">Newest rejected calls</h2>
      <ul class="members">
        {data.results.map(({ id, recordedAt, client, reason }) => (
          <li key={id}>
            <a href={hrefOf(['dead-letters', id])}>
              <Time value={recordedAt} />
            </a>{' '}
            {client} <span class="verbatim">{beginningOf(reason)}</span>
          </li>
        ))}
      </ul>
      <p>
        <a href={hrefOf(['dead-letters'], new URLSearchParams({ kind: 'rejected' }))}>All rejected calls</a>
      </p>
    </section>
  );
}

function lagOf({ lag }: Pipeline): string {
  if (!lag) return '';
  if (lag.messages === 0) return 'Everything that was accepted is stored.';
  return `${formatCount(lag.messages, 'message')} not stored yet, the oldest for ${formatDuration(lag.seconds)}.`;
}
