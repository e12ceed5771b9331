import { type EventPage, getRecords, ingestUrl, key } from './base/base.ts';
import { EventTable, useLiveTail, withStored } from './events/events.ts';
import { Problem, Snippet, useLoad } from './parts/parts.ts';

const NO_FILTERS = new URLSearchParams();

/** What to do while the workspace has no event. The first one appears as it is stored. */
export function FirstVisit({ onBegin }: { readonly onBegin: () => void }) {
  const tail = useLiveTail(true, NO_FILTERS);
  // What was stored before the tail began is not in it.
  const { data } = useLoad(`first events ${tail.starts}`, async (signal) =>
    tail.starts === 0 ? undefined : await getRecords<EventPage>('events?limit=50&total=none', signal),
  );
  const events = withStored(tail, data?.results ?? []);
  const withKey = key.value === '' ? 'YOUR_KEY' : key.value;
  const url = ingestUrl();
  const curl = `curl -X POST ${url}/v1/public/userGroups \\
  -H 'Authorization: Bearer ${withKey}' -H 'Content-Type: application/json' \\
  -d '{"foreignUserGroupId":"acme","foreignUserId":"jane","events":[{"event":"signed_up","properties":{"plan":"pro"}}]}'`;
  const client = `import { createClient } from '@sluice/client';

const client = createClient({ url: '${url}', key: '${withKey}' });
client.track('signed_up', { plan: 'pro' }, { userId: 'jane' });
await client.close();`;
  return (
    <>
      <p>There are no events in this workspace yet. Send the first one, with a key that has the scope ingest:</p>
      <Snippet title="With curl" text={curl} />
      <Snippet title="With the client for JavaScript" text={client} />
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
