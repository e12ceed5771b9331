import { useState } from 'preact/hooks';
import { type CreatedKey, type EventPage, getRecords, hrefOf, ingestUrl, route, sendJson } from '../base/base.ts';
import { EventTable, useLiveTail, withStored } from '../events/events.ts';
import { Problem, Snippet, useAction, useLoad } from '../parts/parts.ts';
import { LoadExample } from './example-data.tsx';
import { type FirstProgram, firstPrograms } from './first-programs.ts';

const NO_FILTERS = new URLSearchParams();

/** What to do while the workspace has no event. The first one appears as it is stored. */
export function FirstVisit({ onBegin }: { readonly onBegin: () => void }) {
  const tail = useLiveTail(true, NO_FILTERS);
  // What was stored before the tail began is not in it.
  const { data } = useLoad(`first events ${tail.starts}`, async (signal) =>
    tail.starts === 0 ? undefined : await getRecords<EventPage>('events?limit=50&total=none', signal),
  );
  const events = withStored(tail, data?.results ?? []);
  const url = ingestUrl();
  const [key, setKey] = useState('YOUR_KEY');
  const programs = firstPrograms(url, key);
  const chosen = programs.find(({ name }) => name === route.value.params.get('with')) ?? programs[0];
  return (
    <>
      <p>
        There are no events in this workspace yet. Send the first one, with a key that has the scope ingest, or look at
        example data first.
      </p>
      <div class="bar">
        <FirstKey onKey={setKey} />
        <LoadExample />
      </div>
      <nav class="switch" aria-label="Ways to send">
        {programs.map(({ name, title }) => (
          <a
            key={name}
            href={hrefOf(['home'], new URLSearchParams({ with: name }))}
            aria-current={name === chosen?.name ? 'page' : undefined}
          >
            {title}
          </a>
        ))}
      </nav>
      {chosen && <Program key={chosen.name} {...chosen} />}
      <p class="muted">{url} stands for the address of ingest-api, which may be another one here.</p>
      {tail.error && <Problem error={tail.error} />}
      {events.length === 0 ? (
        <p role="status">Waiting for the first event …</p>
      ) : (
        <>
          <p role="status">The first event has arrived.</p>
          <EventTable events={events} caption="First events" />
          <p class="bar">
            <button type="button" class="primary" onClick={onBegin}>
              Show the numbers
            </button>
          </p>
        </>
      )}
    </>
  );
}

/** A program with the commands that install what it needs and run it. */
function Program({ title, install, file, text, run }: FirstProgram) {
  return (
    <>
      {install && <Snippet title={`Install for ${title}`} text={install} />}
      <Snippet title={file ?? title} text={text} />
      {run && <Snippet title={`Run ${file}`} text={run} />}
    </>
  );
}

/** What the list of keys calls a key that was made here. */
const NAME = 'first program';

/** A button that makes a key which may send events and nothing else. A key without the scope admin cannot make one. */
function FirstKey({ onKey }: { readonly onKey: (key: string) => void }) {
  const { outcome, failure, act } = useAction();
  const make = async () => {
    const response = await sendJson('keys', 'POST', { scopes: ['ingest'], name: NAME });
    const { id, key } = (await response.json()) as CreatedKey;
    onKey(key);
    return `The key ${id} may send events, and nothing else. It is in the program now, and is never shown again.`;
  };
  return (
    <>
      <button type="button" class="primary" onClick={() => void act(make)}>
        Make a key
      </button>
      {outcome && <p role="status">{outcome}</p>}
      {failure && (
        <div>
          <Problem error={failure} />
          <p>
            Only a key with the scopes <code>admin</code> and <code>ingest</code> makes one.{' '}
            <a href={hrefOf(['keys'])}>Keys</a> says how to get it.
          </p>
        </div>
      )}
    </>
  );
}
