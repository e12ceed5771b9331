import { getJson, type Pipeline } from './api.ts';
import { attentionOf } from './attention.ts';
import { formatCount, formatDuration } from './format.ts';
import { Problem } from './problem.tsx';
import { hrefOf } from './route.ts';
import { useLoad } from './use-load.ts';

const READ_EVERY_MS = 10_000;

/** In a line whether everything that was accepted is stored, and what needs attention. */
export function PipelineState() {
  const { data, error } = useLoad('pipeline state', (signal) => getJson<Pipeline>('pipeline', signal), READ_EVERY_MS);
  if (error) return <Problem error={error} />;
  if (!data) return null;
  const attention = attentionOf(data, undefined);
  return (
    <p class={attention.length > 0 ? 'notice' : 'muted'}>
      {lagOf(data)} {attention.join(' ')} <a href={hrefOf(['pipeline'])}>Pipeline</a>
    </p>
  );
}

function lagOf({ lag }: Pipeline): string {
  if (!lag) return '';
  if (lag.messages === 0) return 'Everything that was accepted is stored.';
  return `${formatCount(lag.messages, 'message')} not stored yet, the oldest for ${formatDuration(lag.seconds)}.`;
}
